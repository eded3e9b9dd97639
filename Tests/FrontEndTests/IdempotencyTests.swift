import FanfareCore
import Foundation
import RDKafka
import Support
import Synchronization
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct IdempotencyTests {
  private static let body = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
  private static let other = #"{"to":{"user":"bob"},"message":{"body":"c"}}"#
  private static let ndjson = "application/x-ndjson"

  private func post(
    _ app: Harness, _ path: String = "/api/sends", key: String?, as user: String = "alice", body: String = body,
    type: String = "application/json"
  ) async throws -> Reply {
    try await app.request(
      .post, path, as: user, body: body, type: type, headers: key.map { [("Idempotency-Key", $0)] } ?? [])
  }

  @Test func repeatedRequestGetsTheFirstAnswerFor24Hours() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let first = try await post(app, key: "k 1")
      #expect(first.status == 202)
      let id = try first.sendID()
      #expect(try sink.sends().map(\.id) == [id])
      app.clock.advance(by: .seconds(24 * 3600) - .milliseconds(1))
      let second = try await post(app, key: "k 1")
      #expect(second.status == 202 && second.body == first.body && second["Location"] == first["Location"])
      try await post(app, key: "k 1", body: Self.other).expectProblem(409, "keyReused", naming: "Idempotency-Key")
      #expect(sink.records.count == 1)

      // After 24 hours the key is free.
      app.clock.advance(by: .milliseconds(1))
      let third = try await post(app, key: "k 1", body: Self.other)
      #expect(third.status == 202)
      #expect(try third.sendID() != id)
      #expect(sink.records.count == 2)
      // Without a key every request is a new send.
      for _ in 0..<2 { #expect(try await post(app, key: nil).status == 202) }
      #expect(Set(try sink.sends().map(\.id)).count == 4)
    }
  }

  @Test func keyIsScopedToCallerAndHub() async throws {
    let sink = RecordingSink()
    let demo = Harness.authenticator
    let hub = try #require(HubName("shop"))
    try await Harness.run({
      $0.sink = sink
      $0.hubs = [FrontEndHub(name: .default, authenticators: [demo]), FrontEndHub(name: hub, authenticators: [demo])]
    }) { app in
      for user in ["alice", "sandy"] {
        for path in ["/api/sends", "/hubs/shop/api/sends"] {
          let reply = try await post(app, path, key: "k", as: user)
          #expect(reply.status == 202)
        }
      }
      #expect(Set(try sink.sends().map(\.id)).count == 4)
      #expect(try sink.sends().allSatisfy { $0.id.high >> 12 & 0xF == 8 && $0.id.low >> 62 == 2 }, "UUIDs of version 8")
      // The default hub by its name.
      #expect(try await post(app, "/hubs/default/api/sends", key: "k").status == 202)
      #expect(sink.records.count == 4)
    }
  }

  @Test func invalidKeyIsRefused() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for path in [
        "/api/sends", "/api/sends/batch", "/api/notifications?pns=apns&to_tag=bob",
        "/api/notifications/secure?to_tag=bob",
      ] {
        for key in ["", String(repeating: "k", count: 256), "\u{E9}", "a\tb"] {
          try await post(app, path, key: key).expectProblem(400, "malformedRequest", naming: "Idempotency-Key")
        }
      }
      let twice = try await RawConnection.exchange(
        "POST /api/sends HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: \(Harness.basic("alice", "alice"))\r\n"
          + "Content-Type: application/json\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\nContent-Length: \(Self.body.utf8.count)\r\n\r\n"
          + Self.body, port: app.port)
      #expect(twice.hasPrefix("HTTP/1.1 400") && twice.contains("Idempotency-Key must be given once"))
      #expect(sink.isEmpty)
      #expect(try await post(app, key: String(repeating: "~", count: 255)).status == 202)
    }
  }

  @Test func refusedRequestDoesNotClaimItsKey() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      try await post(app, key: "k", body: "{}").expectProblem(400, "invalidField")
      #expect(try await post(app, key: "k").status == 202)
    }
  }

  /// After an error the outcome is unknown: the repetition enqueues the send again under the same id.
  @Test(arguments: [RDKafkaError.Code.notPersisted, .possiblyPersisted]) func repetitionAfterFailureUsesTheSameID(
    code: RDKafkaError.Code
  ) async throws {
    let ids = Mutex<[SendID]>([])
    let sink = RecordingSink { record in
      let send = try? SendRequest.decode(record.value[...], recordTime: UnixTime(milliseconds: 0))
      let count = ids.withLock { ids in
        if let send { ids.append(send.id) }
        return ids.count
      }
      return count == 1 ? RDKafkaError(code: code, message: "no") : nil
    }
    try await Harness.run({ $0.sink = sink }) { app in
      #expect(try await post(app, key: "k").status == 503)
      app.clock.advance(by: .seconds(5))
      try await post(app, key: "k", body: Self.other).expectProblem(409, "keyReused")
      let reply = try await post(app, key: "k")
      #expect(reply.status == 202)
      let id = try reply.sendID()
      #expect(ids.withLock { $0 } == [id, id])
      #expect(try await post(app, key: "k").sendID() == id)
      #expect(ids.withLock { $0.count } == 2)
    }
  }

  @Test func nothingIsAcceptedIfTheClaimCannotBeStored() async throws {
    let sink = RecordingSink()
    try await Harness.run({
      $0.sink = sink
      $0.claims = BrokenClaims()
    }) { app in
      try await post(app, key: "k").expectProblem(503, "registryUnavailable")
      #expect(sink.isEmpty)
      #expect(try await post(app, key: nil).status == 202)
    }
  }

  /// Kafka has the send but the claim is not settled: both records are the same send with one payload.
  @Test func repetitionAfterAnUnsettledClaimEnqueuesTheSameSend() async throws {
    let sink = RecordingSink()
    let temporary = try TemporaryRegistry()
    let claims = ForgetfulClaims(over: temporary.registry)
    try await Harness.run({
      $0.sink = sink
      $0.claims = claims
    }) { app in
      let body = String(Self.body.dropLast()) + #","ttl":60}"#
      let requests: [(path: String, body: String, type: String, status: Int)] = [
        ("/api/sends", body, "application/json", 202), ("/api/sends/batch", body, Self.ndjson, 200),
        ("/api/notifications?pns=apns&to_tag=bob", #""hello""#, "application/json", 200),
        ("/api/notifications/secure?to_tag=bob", #""hello""#, "application/json", 200),
      ]
      for (number, (path, body, type, status)) in requests.enumerated() {
        claims.forgetOne()
        try await post(app, path, key: "k\(number)", body: body, type: type).expectProblem(503, "registryUnavailable")
        app.clock.advance(by: .seconds(20 * 3600))
        #expect(try await post(app, path, key: "k\(number)", body: body, type: type).status == status)
        let sends = try sink.sends().suffix(2)
        #expect(Set(sends.map(\.id)).count == 1 && Set(sends.map(\.content)).count == 1)
        // The time to live counts from the repetition.
        #expect(sends.last?.acceptedAt == app.clock.now() && Set(sends.map(\.timeToLive)).count == 1)
      }
      #expect(sink.records.count == 8)
      let announced = try #require(try sink.sends().last)
      #expect(announced.timeToLive == 24 * 3600)
      // The payload exists as long as its announcement lives.
      app.clock.advance(by: .seconds(24 * 3600 - 1))
      let payload = try await app.request(.get, "/api/notifications/\(try #require(announced.content.wns))", as: "bob")
      #expect(try payload.json["Payload"] == "hello")
    }
  }

  @Test func repeatedBatchKeepsItsIDs() async throws {
    let failing = Mutex(true)
    let sink = RecordingSink { record in
      String(decoding: record.key ?? [], as: UTF8.self) == "username:carol" && failing.withLock { $0 }
        ? RDKafkaError(code: .notPersisted, message: "no") : nil
    }
    try await Harness.run({ $0.sink = sink }) { app in
      let escapes = String(repeating: #"\u0001"#, count: 10_000)
      let batch = [Self.body, "nonsense", Self.body, #"{"to":{"user":"bob"},"message":{"body":"\#(escapes)"}}"#].joined(
        separator: "\n")
      let first = try await post(app, "/api/sends/batch", key: "k", body: batch, type: Self.ndjson)
      let second = try await post(app, "/api/sends/batch", key: "k", body: batch, type: Self.ndjson)
      #expect(first.status == 200 && second.status == 200)
      #expect(try ids(first) == ids(second))
      #expect(try ids(first).compactMap(\.self) == sink.sends().map(\.id))
      try await post(app, "/api/sends/batch", key: "k", body: Self.body, type: Self.ndjson).expectProblem(
        409, "keyReused")
      try await post(app, key: "k").expectProblem(409, "keyReused")

      // The line that Kafka refused is accepted with the repetition; the others keep their ids.
      let mixed = Self.body + "\n" + Self.body.replacing("bob", with: "carol")
      let partial = try ids(try await post(app, "/api/sends/batch", key: "m", body: mixed, type: Self.ndjson))
      #expect(partial[0] != nil && partial[1] == nil)
      failing.withLock { $0 = false }
      let whole = try ids(try await post(app, "/api/sends/batch", key: "m", body: mixed, type: Self.ndjson))
      #expect(whole[0] == partial[0] && whole[1] != nil)
      let count = sink.records.count
      #expect(try ids(try await post(app, "/api/sends/batch", key: "m", body: mixed, type: Self.ndjson)) == whole)
      #expect(sink.records.count == count)
    }
  }

  /// A time too far ahead is refused in the repetition too, although it would be valid by then.
  @Test func repeatedBatchIsValidatedAtTheTimeOfTheFirst() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let time = app.clock.now() + .seconds(366 * 86_400 + 3600)
      let late = Self.body.dropLast() + #","sendAt":"\#(time)"}"#
      let batch = Self.body + "\n" + late
      let first = try await post(app, "/api/sends/batch", key: "late", body: batch, type: Self.ndjson)
      app.clock.advance(by: .seconds(2 * 3600))
      let second = try await post(app, "/api/sends/batch", key: "late", body: batch, type: Self.ndjson)
      #expect(try ids(first)[0] != nil && ids(first)[1] == nil)
      #expect(try ids(second) == ids(first))
      #expect(try sink.sends().count == 1)
    }
  }

  private func ids(_ reply: Reply) throws -> [SendID?] {
    try reply.text.split(separator: "\n").map { try JSON($0.utf8)["id"]?.text.flatMap { SendID($0) } }
  }

  @Test func keysWorkOnAppRoutes() async throws {
    let sink = RecordingSink()
    let store = CountingStore()
    try await Harness.run({
      $0.sink = sink
      $0.secureStore = store
    }) { app in
      for (number, path) in ["/api/notifications?pns=apns&to_tag=bob", "/api/notifications/secure?to_tag=bob"]
        .enumerated()
      {
        let first = try await post(app, path, key: "\(number)", body: #""hello""#)
        #expect(first.status == 200)
        #expect(try await post(app, path, key: "\(number)", body: #""hello""#).body == first.body)
        try await post(app, path, key: "\(number)", body: #""hullo""#).expectProblem(409, "keyReused")
        try await post(app, path.replacing("bob", with: "eve"), key: "\(number)", body: #""hello""#)
          .expectProblem(409, "keyReused")
      }
      #expect(sink.records.count == 2 && store.stored == 1)
    }
  }

  /// A store whose `settle` fails once after every `forgetOne()`.
  final class ForgetfulClaims: SendClaimStore {
    private let store: any SendClaimStore
    private let isForgetting = Mutex(false)

    init(over store: any SendClaimStore) {
      self.store = store
    }

    func forgetOne() { isForgetting.withLock { $0 = true } }

    func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim {
      try await store.claim(claim, lifetime: lifetime)
    }

    func settle(_ claim: SendClaim) async throws {
      guard !isForgetting.withLock({ exchange(&$0, with: false) }) else {
        throw RegistryError(.unavailable, "no store")
      }
      try await store.settle(claim)
    }
  }

  /// An unavailable store.
  private struct BrokenClaims: SendClaimStore {
    func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim {
      throw RegistryError(.unavailable, "no store")
    }

    func settle(_ claim: SendClaim) async throws { throw RegistryError(.unavailable, "no store") }
  }
}
