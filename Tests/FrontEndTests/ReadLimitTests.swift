import RDKafka
import Support
import Testing

@testable import FanfareCore
@testable import FrontEnd

/// What reading costs a caller, and that nothing is read for one that has gone.
@Suite(.timeLimit(.minutes(1))) struct ReadLimitTests {
  private static let authorization = Harness.basic("alice", "alice")

  /// The bytes of a request over HTTP/2, on the first stream of a connection.
  private static func http2Request(_ path: String) -> [UInt8] {
    var fields: [UInt8] = []
    for (name, value) in [
      (":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
      ("authorization", authorization),
    ] {
      // A literal field without indexing and with a new name (RFC 7541 §6.2.2); each text is shorter than 127 bytes.
      fields += [0, UInt8(name.utf8.count)] + name.utf8 + [UInt8(value.utf8.count)] + value.utf8
    }
    return Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
      + [0, 0, UInt8(fields.count), 1, 5, 0, 0, 0, 1] + fields
  }

  private static let resetOfStream: [UInt8] = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]

  @Test(arguments: ["HTTP/1.1", "HTTP/2", "HTTP/2 stream"])
  func readEndsWhenItsClientGoes(_ protocol: String) async throws {
    let history = EndlessHistory()
    try await Harness.run({ $0.history = history }) { app in
      var events = history.events.makeAsyncIterator()
      let bytes =
        `protocol` == "HTTP/1.1"
        ? Array("GET /api/sends HTTP/1.1\r\nHost: localhost\r\nAuthorization: \(Self.authorization)\r\n\r\n".utf8)
        : Self.http2Request("/api/sends")
      if `protocol` == "HTTP/2 stream" {
        try await RawConnection.holding(bytes: bytes, port: app.port) { send in
          #expect(await events.next(isolation: #isolation) == "began")
          try await send(Self.resetOfStream)
          #expect(await events.next(isolation: #isolation) == "cancelled")
        }
      } else {
        try await RawConnection.holding(bytes: bytes, port: app.port) { _ in
          #expect(await events.next(isolation: #isolation) == "began")
        }
        #expect(await events.next() == "cancelled")
      }
    }
  }

  @Test func changeIsMadeAlthoughItsClientGoes() async throws {
    let sink = GatedSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let body = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      // With a key the router answers it.
      let request =
        "POST /api/sends HTTP/1.1\r\nHost: localhost\r\nAuthorization: \(Self.authorization)\r\nIdempotency-Key: k\r\n"
        + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
      var events = sink.events.makeAsyncIterator()
      try await RawConnection.holding(bytes: Array(request.utf8), port: app.port) { _ in
        #expect(await events.next(isolation: #isolation) == "began")
      }
      sink.open()
      #expect(await events.next() == "sent")
    }
  }

  private func run(_ limit: (inout QuotaLimits) -> Void, _ body: (Harness) async throws -> Void) async throws {
    var limits = QuotaLimits.none
    limit(&limits)
    let policy = QuotaPolicy(everyone: limits)
    try await Harness.run(
      {
        $0.configuration.maximumBodySize = 1 << 20
        $0.hubs = [FrontEndHub(name: .default, authenticators: [Harness.authenticator], quotas: policy)]
      }, body)
  }

  private func expectRefusal(_ reply: Reply) throws {
    reply.expectProblem(429, "overQuota")
    #expect(try JSON(reply.body)["quota"]?.text == "reads")
  }

  @Test func readsTakePermitsAndSendsDoNot() async throws {
    try await run({ $0.readsPerSecond = 1 }) { app in
      for path in ["/api/sends", "/api/registrations"] {
        for _ in 0..<4 { #expect(try await app.request(.get, path).status == 200) }
      }
      #expect(try await app.request(.delete, "/api/register/none").status == 404)
      #expect(try await app.request(.get, "/api/installations/none").status == 404)
      try expectRefusal(try await app.request(.get, "/api/registrations"))
      try expectRefusal(try await app.request(.get, "/hubs/default/api/sends"))
      let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#
      #expect(try await app.request(.post, "/api/sends", body: send).status == 202)
      #expect(try await app.request(.get, "/api/session").status == 200)
      #expect(try await app.request(.get, "/api/registrations", as: "bob").status == 200)
      app.clock.advance(by: .seconds(1))
      #expect(try await app.request(.get, "/api/registrations").status == 200)
      try expectRefusal(try await app.request(.get, "/api/registrations"))
    }
  }

  @Test func largeBodiesThatAreRefusedCountAsSends() async throws {
    try await run({ ($0.sendsPerSecond, $0.sendBurst) = (1, 10) }) { app in
      let nonsense = String(repeating: "[", count: 300_000)
      func expectRefusal(_ reply: Reply) throws {
        reply.expectProblem(429, "overQuota")
        #expect(try JSON(reply.body)["quota"]?.text == "sends")
      }
      // Of ten permits each takes four, and the third one what is left.
      for _ in 0..<3 {
        try await app.request(.post, "/api/sends", body: nonsense).expectProblem(400, "malformedBody")
      }
      try expectRefusal(try await app.request(.post, "/api/sends", body: nonsense))
      try expectRefusal(try await app.postInChunks(Array("{}".utf8), to: "/api/sends"))
      let batch = try await app.request(
        .post, "/api/sends/batch", as: "eve", body: nonsense + "\n" + nonsense + nonsense, type: "application/x-ndjson")
      #expect(batch.status == 200)
      try expectRefusal(try await app.request(.post, "/api/sends", as: "eve", body: nonsense + nonsense))
      // Small bodies are read, and other callers have their own permits.
      try await app.request(.post, "/api/sends", body: "[").expectProblem(400, "malformedBody")
      try await app.request(.post, "/api/sends", as: "bob", body: nonsense).expectProblem(400, "malformedBody")
      app.clock.advance(by: .seconds(10))
      let send = #"{"to":{"user":"bob"},"message":{"body":"b"}"# + String(repeating: " ", count: 300_000) + "}"
      for _ in 0..<10 { #expect(try await app.request(.post, "/api/sends", body: send).status == 202) }
    }
  }

  @Test func callerWithTooManyWaitingReadsIsToldItsQuota() throws {
    let own = Refusal(describing: TooManyReads(of: "the registry", hasCaller: true, isOfCaller: true))
    #expect(own.code == .overQuota && own.quota == .reads && own.detail.contains("the registry"))
    let others = Refusal(describing: TooManyReads(of: "the ledger", hasCaller: true, isOfCaller: false))
    #expect(others.code == .overloaded && others.quota == nil && others.detail.contains("the ledger"))
  }
}

/// A history whose lists never come, unless their task is cancelled.
private final class EndlessHistory: SendHistory {
  let events: AsyncStream<String>
  private let event: AsyncStream<String>.Continuation

  init() { (events, event) = AsyncStream.makeStream(of: String.self) }

  func report(of send: SendID, hub: HubName) async throws -> SendReport? { nil }

  func list(_ query: SendQuery) async throws -> SendPage {
    event.yield("began")
    // It ends when the task is cancelled.
    for await _ in AsyncStream.makeStream(of: Void.self).stream {}
    event.yield(Task.isCancelled ? "cancelled" : "ended")
    throw CancellationError()
  }

  func check() async throws {}
}

/// A sink that takes sends when it is opened.
private final class GatedSink: SendSink {
  let events: AsyncStream<String>
  private let event: AsyncStream<String>.Continuation
  private let gate = AsyncStream.makeStream(of: Void.self)

  init() { (events, event) = AsyncStream.makeStream(of: String.self) }

  func open() { gate.continuation.finish() }

  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
    event.yield("began")
    for await _ in gate.stream {}
    event.yield(Task.isCancelled ? "cancelled" : "sent")
    return records.map { .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0)) }
  }
}
