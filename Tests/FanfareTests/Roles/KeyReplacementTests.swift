import FanfareCore
import Foundation
import NIOPosix
import PushServices
import PushSimulator
import Roles
import Support
import Testing

/// A sender gets a new key while it runs: the service refuses the old one, and no restart is needed.
@Suite struct KeyReplacementTests {
  @Test(arguments: Platform.allCases) func newKeyIsUsedWithoutRestart(platform: Platform) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-keys-\(UUID())")
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let simulator = try PushSimulator(
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: TestKafka.quietLogger)
    try await simulator.withRunning { endpoints in
      try simulator.credentials.write(to: directory.path, endpoints: endpoints)
      let settings = try Settings.load(
        file: nil,
        environment: [
          "FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "none",
          "FANFARE_HUB_DEFAULT_SIMULATOR": directory.path,
        ])
      let senders = try settings.hubs[0].senders(Runtime(settings: settings, logger: TestKafka.quietLogger))
      let renewable = try #require(senders.first { $0.sender.platform == platform })
      func write(_ files: [String: Data]) throws {
        for (name, data) in files { try data.write(to: directory.appending(path: name)) }
      }
      try await Outcomes.pushing(through: renewable.sender) { push in
        expectEqual(try await push(), .accepted)
        expectEqual(try renewable.renew(), false)
        let files = try #require(try await simulator.replaceKey(of: platform))
        let refusal = try await push()
        #expect(refusal != .accepted)
        try write(files)
        expectEqual(try renewable.renew(), true)
        expectEqual(try renewable.renew(), false)
        expectEqual(try await push(), .accepted)
        #expect(renewable.sender.readinessProblem == nil)
        // An invalid key changes nothing.
        for file in renewable.files { try Data("no key".utf8).write(to: URL(filePath: file)) }
        #expect(throws: (any Error).self) { try renewable.renew() }
        expectEqual(try await push(), .accepted)
      }
    }
  }
}

extension Outcomes {
  /// Runs a sender while `body` runs, which gets a function that pushes to a device.
  fileprivate static func pushing(
    through sender: some PushSender, _ body: (_ push: () async throws -> PushOutcome.Verdict) async throws -> Void
  ) async throws {
    let now = SystemWallClock().now()
    let send = SendRequest(
      id: .random(), acceptedAt: now, audience: .everyone, content: Content(message: Message(body: "b")))
    let rendering = try sender.render(send)
    try await running(sender) { sender in
      try await body {
        let push = Push(
          ticket: 1, id: PushID(send: send.id, registration: .random()),
          handle: sender.platform.vocabulary.absentHandle, rendering: rendering, expiresAt: now + .seconds(3600))
        return try await verdicts([push], to: sender)[0]
      }
    }
  }
}
