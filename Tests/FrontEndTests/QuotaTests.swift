import FanfareCore
import RDKafka
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// The rate of sends.
@Suite(.timeLimit(.minutes(2))) struct QuotaTests {
  private static let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  private func run(_ quota: QuotaLimits, sink: RecordingSink, _ body: (Harness) async throws -> Void) async throws {
    let demo = Harness.authenticator
    let shop = try #require(HubName("shop"))
    try await Harness.run(
      {
        $0.sink = sink
        $0.hubs = [
          FrontEndHub(name: .default, authenticators: [demo], quotas: QuotaPolicy(everyone: quota)),
          FrontEndHub(name: shop, authenticators: [demo]),
        ]
      }, body)
  }

  @Test func sendsOverQuotaAreAnswered429WithRetryAfter() async throws {
    let sink = RecordingSink()
    try await run(.sends(2, burst: 3), sink: sink) { app in
      func post(as user: String = "alice", _ path: String = "/api/sends", key: String? = nil) async throws -> Reply {
        try await app.request(
          .post, path, as: user, body: path.hasSuffix("sends") ? Self.send : #""x""#,
          headers: key.map { [("Idempotency-Key", $0)] } ?? [])
      }
      let notify = "/api/notifications?pns=apns&to_tag=bob"
      #expect(try await post().status == 202)
      let kept = try await post(key: "k")
      #expect(kept.status == 202)
      #expect(try await post(notify).status == 200)
      for path in ["/api/sends", notify, "/api/notifications/secure?to_tag=bob"] {
        let reply = try await post(path)
        reply.expectProblem(429, "overQuota")
        #expect(reply["Retry-After"] == "1")
        #expect(try JSON(reply.body)["quota"]?.text == "sends")
        #expect(try JSON(reply.body)["detail"]?.text?.contains("quota sends") == true)
      }
      // A repetition takes no permit, and other senders and hubs have their own quota.
      #expect(try await post(key: "k").body == kept.body)
      #expect(try await post(as: "sandy").status == 202)
      #expect(try await post("/hubs/shop/api/sends").status == 202)
      app.clock.advance(by: .milliseconds(499))
      try await post().expectProblem(429, "overQuota")
      app.clock.advance(by: .milliseconds(1))
      #expect(try await post().status == 202)
      try await post().expectProblem(429, "overQuota")
      #expect(sink.records.count == 6)
    }
  }

  @Test func everyLineOfABatchTakesAPermitOfTheQuota() async throws {
    let sink = RecordingSink()
    try await run(.sends(1, burst: 3), sink: sink) { app in
      func batch(_ lines: [String]) async throws -> [String?] {
        let reply = try await app.request(
          .post, "/api/sends/batch", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
        #expect(reply.status == 200)
        return try reply.body.split(separator: UInt8(ascii: "\n")).map { try JSON($0)["error"]?["code"]?.text }
      }
      let later = Self.send.replacing(#""b"}"#, with: #""b"},"sendAt":"2026-12-01T08:00:00Z""#)
      // Invalid lines take no permit; scheduled ones do.
      let first = try await batch(["x", Self.send, later, Self.send, Self.send, later])
      #expect(first == ["malformedBody", nil, nil, nil, "overQuota", "overQuota"])
      #expect(sink.records.count == 2)
      app.clock.advance(by: .seconds(2))
      let second = try await batch([Self.send, Self.send, Self.send])
      #expect(second == [nil, nil, "overQuota"])
    }
  }

  /// A repetition starts at the first line again: a batch accepted in parts would never be complete.
  @Test func quotaAllowsABatchWithAKeyAsAWholeOrNotAtAll() async throws {
    let sink = RecordingSink()
    try await run(.sends(1, burst: 3), sink: sink) { app in
      func batch(_ lines: Int, key: String) async throws -> Reply {
        try await app.request(
          .post, "/api/sends/batch", body: Array(repeating: Self.send, count: lines).joined(separator: "\n"),
          type: "application/x-ndjson", headers: [("Idempotency-Key", key)])
      }
      let large = try await batch(4, key: "a")
      large.expectProblem(413, "tooLarge")
      #expect(try JSON(large.body)["detail"]?.text?.contains("has 4 sends and the quota allows 3") == true)
      #expect(try await app.request(.post, "/api/sends", body: Self.send).status == 202)
      for _ in 0..<2 {
        let refused = try await batch(3, key: "b")
        refused.expectProblem(429, "overQuota")
        #expect(refused["Retry-After"] == "1")
        #expect(sink.records.count == 1)
        app.clock.advance(by: .milliseconds(500))
      }
      // The key of the oversized batch is free, and refused batches took no permits.
      let accepted = try await batch(3, key: "a")
      #expect(accepted.status == 200)
      #expect(sink.records.count == 4)
      #expect(try await batch(3, key: "a").body == accepted.body)
      let later = try await batch(3, key: "b")
      later.expectProblem(429, "overQuota")
      #expect(later["Retry-After"] == "3")
      app.clock.advance(by: .seconds(3))
      #expect(try await batch(3, key: "b").status == 200)
      #expect(sink.records.count == 7)
    }
  }

  @Test func untriedSendsTakeNoPermit() async throws {
    let hasRoom = Mutex(false)
    let demo = Harness.authenticator
    let store = CountingStore()
    try await Harness.run({
      $0.hubs = [
        FrontEndHub(name: .default, authenticators: [demo], quotas: QuotaPolicy(everyone: .sends(1, burst: 1)))
      ]
      $0.hasRoom = { hasRoom.withLock { $0 } }
      $0.secureStore = store
    }) { app in
      try await app.request(.post, "/api/sends", body: Self.send).expectProblem(503, "overloaded")
      hasRoom.withLock { $0 = true }
      #expect(try await app.request(.post, "/api/sends", body: Self.send).status == 202)
      // The payload of a refused announcement is not stored.
      try await app.request(
        .post, "/api/notifications/secure?to_tag=bob", body: #""x""#, headers: [("Idempotency-Key", "k")]
      )
      .expectProblem(429, "overQuota")
      #expect(store.stored == 0)
    }
  }
}

extension QuotaLimits {
  /// Only the rate of sends is limited.
  static func sends(_ perSecond: Int, burst: Int) -> Self {
    var limits = Self.none
    (limits.sendsPerSecond, limits.sendBurst) = (perSecond, burst)
    return limits
  }
}
