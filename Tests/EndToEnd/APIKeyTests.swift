import Foundation
import Testing

@testable import fanfare_dev

/// `fanfare keys` beside a running front end.
@Suite(.timeLimit(.minutes(3))) struct APIKeyTests {
  private let message = #"{"to":{"user":"bob"},"message":{"body":"hello"}}"#

  /// Posts a send with a bearer token, and returns the status.
  private func send(_ token: String, _ body: String, to caller: Caller) async throws -> Int {
    try await caller.call("POST", "/api/sends", body: body, headers: [("authorization", "Bearer \(token)")]).status
  }

  @Test func keysAreMadeUsedRotatedAndRevoked() async throws {
    try await Deployment.with { deployment in
      let caller = try await deployment.startFrontEnd()
      func create(_ options: String...) async throws -> (id: String, key: String) {
        let made = try await deployment.run(["keys", "create", "--user", "shop-backend", "--json"] + options)
        #expect(made.status == 0, "\(made.errors)")
        let json = try #require(
          try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any], "\(made.output)")
        return (try #require(json["id"] as? String), try #require(json["key"] as? String))
      }
      let first = try await create("--scope", "send:user", "--comment", "the old one")
      let second = try await create("--scope", "send:user", "--scope", "send:tag", "--expires-in-days", "30")
      let everyone = #"{"to":{"everyone":true},"message":{"body":"hello"}}"#
      for key in [first.key, second.key] {
        #expect(try await send(key, message, to: caller) == 202)
        #expect(try await send(key, everyone, to: caller) == 403)
      }
      let list = try await deployment.run(["keys", "list"])
      let lines = list.output.split(separator: "\n").map(String.init)
      #expect(lines.count == 2 && lines[0].hasPrefix(first.id) && lines[0].hasSuffix("shop-backend the old one"))
      #expect(!list.output.contains(first.key.suffix(49)) && !list.output.contains(second.key.suffix(49)))
      let revoked = try await deployment.run(["keys", "revoke", first.id])
      #expect(revoked.status == 0 && revoked.output == "revoked \(first.id)\n")
      #expect(revoked.errors.contains("key.revoked") && !revoked.errors.contains("shop-backend"))
      try await eventually(within: .seconds(30), "the revoked key to be refused") {
        try await send(first.key, message, to: caller) == 401
      }
      #expect(try await send(second.key, message, to: caller) == 202)
      #expect(try await deployment.run(["keys", "revoke", first.id]).status == 1)
      // Neither the whole key nor a mistyped one is an id.
      #expect(try await deployment.run(["keys", "revoke", second.key]).status == 64)
      #expect(try await send(String(second.key.dropLast()) + "_", message, to: caller) == 401)
    }
  }

  @Test func badArgumentsAreRefusedByName() async throws {
    try await withDirectory("keys") { directory in
      for (arguments, words) in [
        (["--user", "a:b", "--scope", "device"], "--user must be"), (["--user", "a"], "--scope"),
        (["--user", "a", "--scope", "everything"], "--scope"),
        (["--user", "a", "--scope", "device", "--expires-in-days", "0"], "--expires-in-days must be 1 to 3650"),
        (["--user", "a", "--scope", "device", "--comment", "a\nb"], "--comment must have"),
        (["--user", "a", "--scope", "device", "--hub", "other"], "--hub: there is no hub other"),
      ] {
        let command = try ChildProcess(
          ["keys", "create"] + arguments, name: "keys",
          environment: ["FANFARE_REGISTRY_PATH": directory.appending(path: "registry").path],
          program: ChildProcess.product, directory: directory, keepsOutput: true)
        defer { command.destroy() }
        #expect(try await command.exitStatus() == 64, "\(arguments)")
        #expect(command.log.contains(words), "\(arguments): \(command.log)")
        #expect(try command.output().isEmpty)
      }
    }
  }
}
