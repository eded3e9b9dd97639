import Foundation
import HTTP2
import Support
import Testing

/// Against nghttp2's own server.
@Suite(
  .timeLimit(.minutes(1)), .enabled(if: ChildProcess.find("nghttpd") != nil, "needs nghttpd (Debian: nghttp2-server)"))
struct NghttpdTests {
  @Test(arguments: [[], ["-m", "3"], ["-w", "14", "-W", "16"], ["-c", "0"], ["-c", "100"]] as [[String]])
  func answersEveryRequest(options: [String]) async throws {
    let program = try #require(ChildProcess.find("nghttpd"))
    let port = try await ChildProcess.freePort()
    let folder = try ChildProcess.temporaryFolder()
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: folder) } }
    let files = try PoolFixture.certificates.get().write(to: folder)
    try Data("found".utf8).write(to: URL(fileURLWithPath: folder + "/file"))
    let nghttpd = try ChildProcess(
      program, ["-a", "127.0.0.1", "-d", folder] + options + [String(port), files.key, files.certificate])
    defer { withExtendedLifetime(nghttpd) {} }

    let pool = try PoolFixture.pool(port: port, events: Probe()) { $0.maximumConnections = 2 }
    async let run: Void = pool.run()
    let completions = Probe<HTTP2Completion>()
    let body = [UInt8](repeating: 7, count: 4096)
    for start in stride(from: 0, to: 1000, by: 100) {
      let requests = (start..<(start + 100)).map {
        PoolFixture.request($0, path: $0.isMultiple(of: 2) ? "/file" : "/missing", body: body)
      }
      pool.submit(requests) { completions.add(contentsOf: $0) }
    }
    let all = try await completions.wait(count: 1000)
    #expect(Set(all.map(\.ticket)).count == 1000)
    for completion in all {
      let response = try completion.result.get()
      #expect(response.status == (completion.ticket.isMultiple(of: 2) ? 200 : 404))
      if response.status == 200 { #expect(response.body == Array("found".utf8)) }
    }
    await pool.close(timeout: .seconds(5))
    await run
  }
}
