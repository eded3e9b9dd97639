import FanfareCore
import RDKafka
import Registry
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// The quotas of callers besides the rate of sends, which has its own tests.
@Suite(.timeLimit(.minutes(2))) struct CallerQuotaTests {
  private static let everyone = #"{"to":{"everyone":true},"message":{"body":"b"}}"#
  private static let single = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
  private static let later = #"{"to":{"user":"bob"},"message":{"body":"b"},"sendAt":"2026-12-01T08:00:00Z"}"#

  private func run(
    exceptions: [String: QuotaLimits] = [:], store: (any CallerQuotaStore)? = nil, sink: any SendSink = RecordingSink(),
    _ limit: (inout QuotaLimits) -> Void, _ body: (Harness) async throws -> Void
  ) async throws {
    var limits = QuotaLimits.none
    limit(&limits)
    let policy = QuotaPolicy(everyone: limits, exceptions: exceptions)
    try await Harness.run(
      {
        $0.hubs = [FrontEndHub(name: .default, authenticators: [Harness.authenticator], quotas: policy)]
        $0.sink = sink
        $0.quotas = store
      }, body)
  }

  private func expectRefusal(_ reply: Reply, by quota: QuotaName) throws {
    reply.expectProblem(429, "overQuota")
    #expect(try JSON(reply.body)["quota"]?.text == quota.rawValue)
    #expect(try JSON(reply.body)["detail"]?.text?.contains("quota \(quota.rawValue)") == true)
    #expect(Int(reply["Retry-After"] ?? "").map { $0 > 0 } == true)
  }

  private func register(_ count: Int, in app: Harness, tag: String) async throws {
    for number in 0..<count {
      let handle = "\(tag)\(number)"
      let id = try await app.registry.issue(hub: .default, handle: nil, at: app.clock.now())
      _ = try await app.registry.complete(
        DeviceRequest(id: id, hub: .default, user: "u", platform: .fcm, handle: handle, tags: [tag]),
        at: app.clock.now())
    }
  }

  @Test func broadcastsTakeTheEstimatedDevicesOfTheirAudience() async throws {
    try await run({ $0.devicesPerDay = 100 }) { app in
      try await register(60, in: app, tag: "news")
      #expect(try await app.request(.post, "/api/sends", as: "opal", body: Self.everyone).status == 202)
      // Something is left, so the next one is accepted as a whole, and then nothing is left.
      let tag = #"{"to":{"tag":"news"},"message":{"body":"b"}}"#
      #expect(try await app.request(.post, "/api/sends", as: "opal", body: tag).status == 202)
      try expectRefusal(try await app.request(.post, "/api/sends", as: "opal", body: Self.everyone), by: .devices)
      // Sends to one user take nothing of it, and other callers have their own.
      #expect(try await app.request(.post, "/api/sends", as: "opal", body: Self.single).status == 202)
      let lines = [Self.single, Self.everyone, Self.single].joined(separator: "\n")
      let batch = try await app.request(
        .post, "/api/sends/batch", as: "opal", body: lines, type: "application/x-ndjson")
      let answers = try batch.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0)["error"]?["quota"]?.text }
      #expect(answers == [nil, "devices", nil])
      app.clock.advance(by: .seconds(86_400))
      #expect(try await app.request(.post, "/api/sends", as: "opal", body: Self.everyone).status == 202)
    }
  }

  @Test func overdrawnDevicesComeBackBeforeAnotherBroadcast() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    store.devices = 6_000_000
    try await run(store: store, { $0.devicesPerDay = 8_640_000 }) { app in
      func post() async throws -> Reply { try await app.request(.post, "/api/sends", as: "opal", body: Self.everyone) }
      // The second one overdraws.
      for _ in 0..<2 { #expect(try await post().status == 202) }
      // The front end's own share is a device a second, and must not admit a broadcast of any size for it.
      for _ in 0..<20 {
        app.clock.advance(by: .seconds(1))
        try expectRefusal(try await post(), by: .devices)
      }
      app.clock.advance(by: .seconds(86_400))
      #expect(try await post().status == 202)
    }
  }

  @Test func refusedBroadcastsTakeNoDevices() async throws {
    let failing = Mutex(true)
    let sink = RecordingSink { _ in
      failing.withLock { $0 } ? RDKafkaError(code: .notPersisted, message: "no") : nil
    }
    try await run(sink: sink, { $0.devicesPerDay = 90 }) { app in
      try await register(60, in: app, tag: "news")
      func post() async throws -> Reply { try await app.request(.post, "/api/sends", as: "opal", body: Self.everyone) }
      for _ in 0..<9 { try await post().expectProblem(503, "kafkaUnavailable") }
      failing.withLock { $0 = false }
      // The second one overdraws.
      for _ in 0..<2 { #expect(try await post().status == 202) }
      try expectRefusal(try await post(), by: .devices)
    }
  }

  @Test func openBroadcastsAreLimitedWhereTheyAreLarge() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    let failing = Mutex(false)
    let sink = RecordingSink { _ in
      failing.withLock { $0 } ? RDKafkaError(code: .notPersisted, message: "no") : nil
    }
    try await run(store: store, sink: sink, { $0.openBroadcasts = 2 }) { app in
      func post() async throws -> Reply { try await app.request(.post, "/api/sends", as: "opal", body: Self.everyone) }
      store.devices = HubQuotas.largeBroadcast
      failing.withLock { $0 = true }
      // What Kafka does not take is not open.
      for _ in 0..<3 { try await post().expectProblem(503, "kafkaUnavailable") }
      failing.withLock { $0 = false }
      #expect(try await post().status == 202)
      let last = try await post()
      #expect(last.status == 202)
      try expectRefusal(try await post(), by: .openBroadcasts)
      let send = try #require(try JSON(last.body)["id"]?.text.flatMap { SendID($0) })
      _ = try await temporary.registry.control(
        BroadcastID(hub: .default, send: send), BroadcastControl(.cancelled, because: .caller), at: app.clock.now())
      try expectRefusal(try await post(), by: .openBroadcasts)
      app.clock.advance(by: .seconds(1))
      #expect(try await post().status == 202)
      store.devices = HubQuotas.largeBroadcast - 1
      #expect(try await post().status == 202)
    }
  }

  /// Guessing at several front ends is limited as at one.
  @Test func failedLoginsOfAUserAreSharedByFrontEnds() async throws {
    let temporary = try TemporaryRegistry()
    func fail(_ user: String, at app: Harness) async throws -> Reply {
      try await app.request(.get, "/api/sends", as: nil, headers: [("Authorization", Harness.basic(user, "x"))])
    }
    try await run(store: temporary.registry, { $0.failedLoginsPerDay = 3 }) { first in
      try await run(store: temporary.registry, { $0.failedLoginsPerDay = 3 }) { second in
        for app in [first, second, first] { try await fail("bob", at: app).expectProblem(401, "unauthenticated") }
        // The quota is used up; each front end finds that out at its next failure.
        for app in [first, second] {
          try await fail("bob", at: app).expectProblem(401, "unauthenticated")
          let reply = try await fail("bob", at: app)
          reply.expectProblem(429, "tooManyFailures")
          #expect(try JSON(reply.body)["quota"]?.text == "failedLogins")
          #expect(Int(reply["Retry-After"] ?? "").map { $0 > 3600 } == true)
          try await fail("carol", at: app).expectProblem(401, "unauthenticated")
          #expect(try await app.request(.get, "/api/sends", as: "alice").status == 200)
        }
        let use = try await temporary.registry.quotaUse(
          hub: .default, user: "bob", after: nil, limit: 1, at: first.clock.now())
        #expect(use.first?.reservedUntil[.failedLogins] != nil)
      }
    }
  }

  @Test func failedLoginsAreAnsweredWhileTheDatabaseIsAway() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    store.isAway = true
    try await run(store: store, { $0.failedLoginsPerDay = 3 }) { app in
      for _ in 0..<10 {
        try await app.request(.get, "/api/sends", as: nil, headers: [("Authorization", Harness.basic("bob", "x"))])
          .expectProblem(401, "unauthenticated")
      }
    }
  }

  @Test func registrationsTakePermits() async throws {
    try await run({ $0.registrationsPerDay = 3 }) { app in
      let id = try await app.issue(handle: "01")
      #expect(try await app.complete(id, handle: "01").status == 200)
      #expect(try await app.complete(id, handle: "01").status == 200)
      try expectRefusal(try await app.complete(id, handle: "01"), by: .registrations)
      try expectRefusal(try await app.request(.post, "/api/register"), by: .registrations)
      try expectRefusal(
        try await app.request(
          .put, "/api/installations/i", body: #"{"platform":"fcm","handle":"t"}"#, type: "application/json"),
        by: .registrations)
      #expect(try await app.request(.post, "/api/register", as: "bob").status == 200)
      // To remove a device is always allowed.
      #expect(try await app.request(.delete, "/api/register/\(id)").status == 200)
    }
  }

  /// Each is a row of its own.
  @Test func templatesTakePermitsLikeRegistrations() async throws {
    try await run({ $0.registrationsPerDay = 6 }) { app in
      let path = "/api/installations/i"
      let template = #"{"body":"{\"data\":{\"k\":\"v\"}}"}"#
      let body = #"{"platform":"fcm","handle":"t","templates":{"a":\#(template),"b":\#(template)}}"#
      #expect(try await app.request(.put, path, body: body, type: "application/json").status == 200)
      let patch = #"[{"op":"remove","path":"/templates/a"}]"#
      #expect(try await app.request(.patch, path, body: patch, type: "application/json-patch+json").status == 200)
      #expect(try await app.request(.post, "/api/register").status == 200)
      try expectRefusal(try await app.request(.post, "/api/register"), by: .registrations)
    }
  }

  @Test func storedBytesAreLimited() async throws {
    let text = String(repeating: "x", count: 2000)
    try await run({ $0.storedBytesPerDay = 1500 }) { app in
      let secure = "/api/notifications/secure?to_tag=bob"
      #expect(try await app.request(.post, secure, body: "\"\(text)\"").status == 200)
      try expectRefusal(try await app.request(.post, secure, body: "\"\(text)\""), by: .storedBytes)
      try expectRefusal(try await app.request(.post, "/api/sends", body: Self.later), by: .storedBytes)
      try expectRefusal(
        try await app.request(.post, "/api/sends", body: Self.single, headers: [("Idempotency-Key", "k")]),
        by: .storedBytes)
      #expect(try await app.request(.post, "/api/sends", body: Self.single).status == 202)
      #expect(try await app.request(.post, "/api/sends", as: "sandy", body: Self.later).status == 202)
    }
  }

  @Test func discardedSecurePayloadTakesNoStoredBytes() async throws {
    let failure = Mutex<RDKafkaError?>(RDKafkaError(code: .notPersisted, message: "no"))
    let sink = RecordingSink { _ in failure.withLock { $0 } }
    try await run(sink: sink, { $0.storedBytesPerDay = 5000 }) { app in
      func post() async throws -> Reply {
        try await app.request(
          .post, "/api/notifications/secure?to_tag=bob", body: "\"\(String(repeating: "x", count: 2000))\"")
      }
      for _ in 0..<9 { try await post().expectProblem(503, "kafkaUnavailable") }
      failure.withLock { $0 = nil }
      // The third one overdraws.
      for _ in 0..<3 { #expect(try await post().status == 200) }
      try expectRefusal(try await post(), by: .storedBytes)
    }
  }

  /// A line that was refused must not pay for the others, nor they for it.
  @Test func batchTakesTheDevicesOfItsAcceptedLines() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    store.devices = 60
    let failing = Mutex(0)
    let sink = RecordingSink { _ in
      failing.withLock { left in
        left -= 1
        return left >= 0 ? RDKafkaError(code: .notPersisted, message: "no") : nil
      }
    }
    failing.withLock { $0 = 2 }
    try await run(store: store, sink: sink, { $0.devicesPerDay = 1000 }) { app in
      _ = try await app.request(
        .post, "/api/sends/batch", as: "opal", body: Array(repeating: Self.everyone, count: 3).joined(separator: "\n"),
        type: "application/x-ndjson")
      let now = app.clock.now()
      let use = try await temporary.registry.quotaUse(hub: .default, user: "opal", after: nil, limit: 1, at: now)
      // The front end's own share is 10, and a reservation 60 at most.
      let used = RateLimit(perDay: 1000).used(until: use.first?.reservedUntil[.devices] ?? 0, at: now)
      #expect((50...60).contains(used))
    }
  }

  @Test func scheduledSendsAreLimitedExceptForSome() async throws {
    var backend = QuotaLimits.none
    backend.scheduledSends = 5
    try await run(exceptions: ["sandy": backend], { $0.scheduledSends = 2 }) { app in
      func batch(_ count: Int, as user: String, key: String? = nil) async throws -> Reply {
        try await app.request(
          .post, "/api/sends/batch", as: user, body: Array(repeating: Self.later, count: count).joined(separator: "\n"),
          type: "application/x-ndjson", headers: key.map { [("Idempotency-Key", $0)] } ?? [])
      }
      #expect(try await app.request(.post, "/api/sends", body: Self.later).status == 202)
      #expect(try await app.request(.post, "/api/sends", body: Self.later).status == 202)
      try expectRefusal(try await app.request(.post, "/api/sends", body: Self.later), by: .scheduledSends)
      let refused = try await batch(3, as: "alice")
      let quotas = try refused.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0)["error"]?["quota"]?.text }
      #expect(quotas == ["scheduledSends", "scheduledSends", "scheduledSends"])
      for (count, quota) in [(4, nil), (2, "scheduledSends"), (1, nil)] {
        let reply = try await batch(count, as: "sandy")
        #expect(try JSON(reply.body.split(separator: UInt8(ascii: "\n"))[0])["error"]?["quota"]?.text == quota)
      }
    }
  }

  @Test func withoutTheRegistrySendsAreAcceptedAsFarAsTheyAreReserved() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    try await run(store: store, { $0 = .sends(1000, burst: 60_000) }) { app in
      store.isAway = true
      // The front end's own share.
      let reply = try await app.request(.post, "/api/sends", body: Self.single)
      #expect(reply.status == 202)
    }
    try await run(store: store, { $0 = .sends(1, burst: 1) }) { app in
      try await app.request(.post, "/api/sends", body: Self.single).expectProblem(503, "registryUnavailable")
    }
  }

  @Test func linesBeyondTheShareAreNotOverQuotaWhileTheRegistryIsAway() async throws {
    let temporary = try TemporaryRegistry()
    let store = WatchedQuotas(over: temporary.registry)
    store.isAway = true
    // The front end's own share is 3.
    try await run(store: store, { $0 = .sends(100, burst: 300) }) { app in
      let lines = Array(repeating: Self.single, count: 5).joined(separator: "\n")
      func post() async throws -> Reply {
        try await app.request(.post, "/api/sends/batch", body: lines, type: "application/x-ndjson")
      }
      // It shows that the registry is away.
      try await post().expectProblem(503, "registryUnavailable")
      let codes = try await post().body.split(separator: UInt8(ascii: "\n")).map {
        try JSON($0)["error"]?["code"]?.text
      }
      #expect(codes == [nil, nil, nil, "registryUnavailable", "registryUnavailable"])
      try await post().expectProblem(503, "registryUnavailable")
    }
  }
}
