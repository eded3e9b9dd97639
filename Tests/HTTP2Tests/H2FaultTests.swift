import Foundation
import HTTP2
import Support
import Testing

/// An APNs-like server that shares no code with this project and misbehaves on purpose.
///
/// It is a Python program outside the package, named by `FANFARE_H2FAULT`.
@Suite(
  .timeLimit(.minutes(1)), .serialized,
  .enabled(if: H2FaultTool.isAvailable, "needs h2fault.py and python3 with the package h2")
)
struct H2FaultTests {
  /// One line of the tool's output.
  private struct Line: Decodable {
    var status: Int?
    var refused: Bool?
    var over_limit: Int?
    var protocol_error: String?
    var h: [String: String]?
  }

  /// Sends `count` pushes and returns the tool's records.
  private func run(count: Int, _ arguments: [String], configure: (inout HTTP2PoolConfiguration) -> Void = { _ in })
    async throws
    -> [Line]
  {
    let python = try #require(H2FaultTool.python)
    let port = try await ChildProcess.freePort()
    let certificates = try PoolFixture.certificates.get()
    let folder = try ChildProcess.temporaryFolder()
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: folder) } }
    let files = try certificates.write(to: folder)
    let tool = try ChildProcess(python, [H2FaultTool.path, String(port), files.certificate, files.key] + arguments)
    try await tool.lines.wait { $0.contains("ready") }

    let pool = try PoolFixture.pool(port: port, events: Probe()) {
      $0.keptResponseHeaders = ["apns-id"]
      $0.maximumSafeResends = 20
      configure(&$0)
    }
    async let run: Void = pool.run()
    let completions = Probe<HTTP2Completion>()
    let requests = (0..<count).map { ticket in
      HTTP2Request(
        ticket: UInt64(ticket),
        shared: [":method": "POST", ":scheme": "https", ":authority": "localhost", "authorization": "bearer token"],
        headers: HTTP2Headers(path: "/3/device/\(String(ticket, radix: 16))", ["apns-id": "id-\(ticket)"]),
        body: Array("{}".utf8),
        timeout: .seconds(15))
    }
    pool.submit(requests) { completions.add(contentsOf: $0) }
    try await completions.wait(count: count)
    await pool.close(timeout: .seconds(1))
    await run

    #expect(Set(completions.values.map(\.ticket)).count == count)
    #expect(completions.values.count == count)
    for completion in completions.values {
      #expect(try completion.result.get().headers["apns-id"] == "id-\(completion.ticket)")
    }
    let lines = try await tool.end().filter { $0.hasPrefix("{") }.map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
    let accepted = lines.filter { $0.status != nil }.compactMap { $0.h?["apns-id"] }
    #expect(accepted.count == count)
    #expect(Set(accepted).count == count)
    #expect(!lines.contains { $0.over_limit != nil })
    #expect(!lines.contains { $0.protocol_error != nil })
    return lines
  }

  @Test func staysWithinTheStreamLimitAsItRises() async throws {
    _ = try await run(count: 500, ["--delay-ms", "2", "--max-streams", "50"])
  }

  @Test func resendsRefusedStreams() async throws {
    let lines = try await run(count: 500, ["--refuse-every", "7"])
    #expect(lines.count { $0.refused == true } >= 500 / 7)
  }

  @Test func goAwayLosesAndRepeatsNothing() async throws {
    let lines = try await run(count: 400, ["--goaway-after", "50", "--delay-ms", "2"]) {
      $0.maximumStreamsPerConnection = 40
    }
    #expect(lines.count == 400)
  }
}
