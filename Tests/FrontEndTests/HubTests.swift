import FanfareCore
import Logging
import RDKafka
import Support
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct HubTests {
  private func hubs(_ names: String...) throws -> [FrontEndHub] {
    try names.map { name in
      FrontEndHub(
        name: try #require(HubName(name)),
        authenticators: [
          name == "gamma"
            ? try DemoAuthenticator(boundTo: "127.0.0.1", policy: ScopePolicy(everyone: [.device]))
            : Harness.authenticator
        ])
    }
  }

  /// Kafka's permissions can then separate the tenants.
  @Test func sendsGoToTheIngressTopicOfTheirHub() async throws {
    let (sink, beta) = (RecordingSink(), try #require(HubName("beta")))
    try await Harness.run({
      $0.hubs = try hubs("default", "beta")
      $0.sink = sink
      $0.configuration.topics.ingressHubs = [beta]
    }) { app in
      let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
      #expect(try await app.request(.post, "/hubs/beta/api/sends", body: send).status == 202)
      let batch = try await app.request(.post, "/hubs/beta/api/sends/batch", body: send, type: "application/x-ndjson")
      #expect(batch.status == 200)
      #expect(sink.records.map(\.topic) == ["fanfare.sends", "fanfare.sends.beta", "fanfare.sends.beta"])
    }
  }

  @Test func hubsAreIsolatedFromEachOther() async throws {
    let beta = try #require(HubName("beta"))
    let id = SendID.random()
    let report = SendReport(
      id: id, hub: beta, state: .settled, sender: "alice", acceptedAt: nil, settledAt: nil, counts: [:], devices: nil)
    try await Harness.runWithKafka({
      $0.hubs = try hubs("default", "beta", "gamma")
      $0.history = ScriptedHistory(reports: [report])
    }) { app, kafka, topics in
      // The same handle is registered in each hub separately.
      let first = try await app.issue(handle: "aa01")
      let second = try await app.issue(handle: "aa01", root: "/hubs/beta")
      #expect(first != second)
      #expect(try await app.complete(first, handle: "aa01").status == 200)
      try await app.complete(first, handle: "aa01", root: "/hubs/beta").expectProblem(410, "gone")
      #expect(try await app.complete(second, handle: "aa01", root: "/hubs/beta").status == 200)
      #expect(try await app.reached(.user("alice")).map(\.description) == [first])
      #expect(try await app.reached(.user("alice"), hub: beta).map(\.description) == [second])
      try await app.request(.delete, "/api/register/\(second)").expectProblem(404, "notFound")
      #expect(try await app.request(.delete, "/hubs/beta/api/register/\(second)").status == 200)
      // The default hub is also reachable by its name.
      #expect(try await app.request(.delete, "/hubs/default/api/register/\(first)").status == 200)

      let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      let one = try await app.request(.post, "/hubs/beta/api/sends", body: send)
      #expect(one["Location"] == "/hubs/beta/api/sends/\(try one.sendID())")
      let app1 = try await app.request(.post, "/hubs/beta/api/notifications?pns=apns&to_tag=bob", body: #""x""#)
      #expect(app1["Location"] == "/hubs/beta/api/sends/\(try app1.sendID())")
      let batch = try await app.request(.post, "/hubs/beta/api/sends/batch", body: send, type: "application/x-ndjson")
      #expect(batch.status == 200)
      let secure = try await app.request(.post, "/hubs/beta/api/notifications/secure?to_tag=bob", body: #""x""#)
      #expect(secure.status == 200)
      let stored = try await kafka.sends(in: topics, count: 4)
      #expect(stored.allSatisfy { $0.send.hub == beta && $0.key == "beta/username:bob" })
      let payload = try #require(stored.compactMap { $0.send.content.wns }.first)
      try await app.request(.get, "/api/notifications/\(payload)", as: "bob").expectProblem(404, "notFound")
      #expect(try await app.request(.get, "/hubs/beta/api/notifications/\(payload)", as: "bob").status == 200)

      #expect(try await app.request(.get, "/hubs/beta/api/sends/\(id)").status == 200)
      for root in ["", "/hubs/default", "/hubs/gamma"] {
        for user in ["alice", "opal"] {
          try await app.request(.get, "\(root)/api/sends/\(id)", as: user).expectProblem(404, "notFound")
        }
      }
      // Scopes belong to a hub.
      try await app.request(.post, "/hubs/gamma/api/sends", body: send).expectProblem(403, "forbidden")
      for hub in ["delta", "Beta", "-", "%2e%2e"] {
        try await app.request(.post, "/hubs/\(hub)/api/sends", body: send).expectProblem(401, "unauthenticated")
      }
    }
  }

  @Test func routesWithoutHubNeedADefaultHub() async throws {
    try await Harness.run({ $0.hubs = try hubs("beta") }) { app in
      try await app.request(.post, "/api/register").expectProblem(401, "unauthenticated")
      #expect(try await app.request(.post, "/hubs/beta/api/register").status == 200)
    }
  }

  @Test func missingHubOrInvalidSettingIsRefusedByName() throws {
    let temporary = try TemporaryRegistry()
    let dependencies = Harness.Setup().dependencies(over: temporary.registry)
    func make(_ hubs: [FrontEndHub], _ change: (inout FrontEndConfiguration) -> Void = { _ in }) throws {
      var configuration = FrontEndConfiguration()
      change(&configuration)
      _ = try FrontEnd(
        configuration: configuration, hubs: hubs, dependencies: dependencies, logger: Logger(label: "test"))
    }
    try make(hubs("default", "beta"))
    for wrong in [[], try hubs("beta", "beta")] {
      let error = #expect(throws: FrontEndError.self) { try make(wrong) }
      #expect(error?.code == .configuration && error?.message.contains("hub") == true)
    }
    let one = try hubs("default")
    for (key, change) in [
      ("port", { $0.port = 65536 }), ("maximumBodySize", { $0.maximumBodySize = 0 }),
      ("maximumBatchSize", { $0.maximumBatchSize = 1 }),
      ("maximumHeaderFieldSize", { $0.maximumHeaderFieldSize = 10 }),
      ("maximumHeaderSize", { $0.maximumHeaderSize = 2000 }),
      ("maximumHeaderCount", { $0.maximumHeaderCount = 1 }), ("maximumConnections", { $0.maximumConnections = 0 }),
      ("bodyTimeout", { $0.bodyTimeout = .zero }), ("idleTimeout", { $0.idleTimeout = .zero }),
      ("writeTimeout", { $0.writeTimeout = .zero }), ("drainTimeout", { $0.drainTimeout = .zero }),
      ("securePayloadLifetime", { $0.securePayloadLifetime = .zero }),
    ] as [(String, (inout FrontEndConfiguration) -> Void)] {
      let error = #expect(throws: FrontEndError.self) { try make(one, change) }
      #expect(error?.code == .configuration && error?.message.contains(key) == true)
    }
  }
}
