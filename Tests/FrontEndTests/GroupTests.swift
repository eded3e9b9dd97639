import FanfareCore
import Foundation
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// Groups of users from a file.
@Suite struct GroupTests {
  /// Writes a temporary group file.
  private func withFile(_ text: String, _ body: (String) async throws -> Void) async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-groups-\(UUID().uuidString)").path
    try Data(text.utf8).write(to: URL(filePath: path))
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
    try await body(path)
  }

  @Test func membersHaveTheScopesOfTheirGroupsAndChangesAreRead() async throws {
    try await withFile("# groups\nops: alice bob\n\nnews:bob\nops: carol\n") { path in
      let time = Mutex(ContinuousClock.now)
      let groups = try GroupDirectory(path: path, now: { time.withLock { $0 } }, logger: TestKafka.quietLogger)
      let demo = try DemoAuthenticator(
        boundTo: "127.0.0.1",
        policy: ScopePolicy(everyone: [], groups: ["ops": [.operate], "news": [.sendTag], "other": [.readAll]]),
        groups: groups)
      func scopes(_ user: String) async throws -> Set<Scope>? {
        let credentials = Credentials.basic(try #require(BasicCredentials(user: user, password: user)))
        return try await demo.authenticate(credentials, hub: .default, from: .unknown)?.scopes
      }
      #expect(try await scopes("alice") == [.operate])
      #expect(try await scopes("bob") == [.operate, .sendTag])
      #expect(try await scopes("carol") == [.operate])
      #expect(try await scopes("dave") == [])
      try Data("other: dave\n".utf8).write(to: URL(filePath: path), options: .atomic)
      time.withLock { $0 += .seconds(1) }
      #expect(try await scopes("alice") == [])
      #expect(try await scopes("dave") == [.readAll])
      try Data("other dave\n".utf8).write(to: URL(filePath: path), options: .atomic)
      time.withLock { $0 += .seconds(1) }
      #expect(try await scopes("dave") == [.readAll], "an invalid file changes nothing")
    }
  }

  @Test(arguments: [("ops alice", "':'"), (": alice", "group name"), ("ops: a:b", "user name")])
  func invalidLineIsReportedByItsNumber(line: String, problem: String) async throws {
    try await withFile("ops: alice\n\(line)\n") { path in
      let error = #expect(throws: FrontEndError.self) {
        try GroupDirectory(path: path, logger: TestKafka.quietLogger)
      }
      #expect(error?.code == .groupFile)
      #expect(error?.message.contains("line 2 ") == true && error?.message.contains(problem) == true)
    }
  }
}
