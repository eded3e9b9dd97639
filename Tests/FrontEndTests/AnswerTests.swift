import AsyncHTTPClient
import FanfareCore
import HTTPTypes
import NIOCore
import Operations
import Support
import Synchronization
import Testing

@testable import FrontEnd
@testable import HTTPServer

/// Answers of any size: streamed, within a budget, and ended when their client does not read.
@Suite(.timeLimit(.minutes(2))) struct AnswerTests {
  /// A request that needs no credentials.
  private static func get(_ path: String, version: String = "1.1", _ fields: String = "") -> String {
    "GET \(path) HTTP/\(version)\r\nHost: x\r\n\(fields)\r\n"
  }

  @Test func anAnswerIsProducedAsItsClientReads() async throws {
    let answers = ScriptedAnswers()
    try await Harness.run({ answers.install(in: &$0) }) { app in
      let request = HTTPClientRequest(url: "http://127.0.0.1:\(app.port)/answers/parts?count=2000&size=65536")
      let response = try await HTTPClient.shared.execute(request, timeout: .minutes(1))
      var read = 0
      for try await chunk in response.body {
        read += chunk.readableBytes
        // What the sockets of both sides and the client hold.
        #expect(answers.produced - read < 24 << 20)
      }
      #expect(read == 2000 * 65536)
      #expect(app.frontEnd.budgets.answers.taken == 0)
    }
  }

  @Test func anAnswerOfUnknownLengthIsChunked() async throws {
    let answers = ScriptedAnswers()
    try await Harness.run({ answers.install(in: &$0) }) { app in
      let requests = Self.get("/answers/parts?count=3&size=4") + Self.get("/nothing", "Connection: close\r\n")
      let text = try await RawConnection.exchange(requests, port: app.port)
      let parts = RawConnection.split(text)
      #expect(parts.count == 2)
      #expect(parts.first?.head.contains("Transfer-Encoding: chunked") == true)
      #expect(parts.first?.head.contains("Content-Length") == false)
      #expect(parts.first?.body == "4\r\naaaa\r\n4\r\naaaa\r\n4\r\naaaa\r\n0\r\n\r\n")
      #expect(parts.last?.head.hasPrefix("HTTP/1.1 404") == true)
      // HTTP/1.0 has no chunks: the body ends with the connection.
      let old = try await RawConnection.exchange(
        Self.get("/answers/parts?count=3&size=4", version: "1.0"), port: app.port)
      #expect(old.hasSuffix("\r\n\r\naaaaaaaaaaaa") && !old.contains("chunked"))
    }
  }

  @Test func anAnswerOfKnownLengthIsNot() async throws {
    let answers = ScriptedAnswers()
    try await Harness.run({ answers.install(in: &$0) }) { app in
      let requests = Self.get("/answers/parts?count=3&size=4&length=12") + Self.get("/nothing", "Connection: close\r\n")
      let parts = RawConnection.split(try await RawConnection.exchange(requests, port: app.port))
      #expect(parts.first?.head.contains("Content-Length: 12") == true && parts.first?.body == "aaaaaaaaaaaa")
      #expect(parts.last?.head.hasPrefix("HTTP/1.1 404") == true)
    }
  }

  /// Its client must see that it is not whole.
  @Test(arguments: ["count=3&size=4&fails=1", "count=3&size=4&length=13", "count=3&size=4&length=11"])
  func aBrokenAnswerEndsTheConnection(query: String) async throws {
    let answers = ScriptedAnswers()
    try await Harness.run({ answers.install(in: &$0) }) { app in
      let text = try await RawConnection.exchange(
        Self.get("/answers/parts?" + query) + Self.get("/nothing"), port: app.port)
      #expect(text.hasPrefix("HTTP/1.1 200") && !text.contains("HTTP/1.1 404") && !text.contains("\r\n0\r\n"))
      while app.frontEnd.budgets.answers.taken > 0 { await Task.yield() }
    }
  }

  @Test func unreadAnswersHaveABudget() async throws {
    let answers = ScriptedAnswers()
    // A network may hold half of it.
    try await Harness.run({
      answers.install(in: &$0)
      $0.configuration.maximumAnswerBytesInMemory = 1 << 20
      $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1"]))
    }) { app in
      // Larger than what the sockets take.
      let large = "/answers/whole?size=250000"
      func request(_ address: String) -> String { Self.get(large, "X-Forwarded-For: \(address)\r\n") }
      let held = String(repeating: request("203.0.113.9"), count: 100)
      try await RawConnection.holding([held, held], port: app.port) {
        // Until the sockets are full, there is room from time to time.
        var same = (head: "", body: "")
        repeat {
          same = try await RawConnection.firstAnswer(to: request("203.0.113.9"), port: app.port)
        } while same.head.hasPrefix("HTTP/1.1 200")
        #expect(same.head.hasPrefix("HTTP/1.1 503") && same.body.contains("overloaded"))
        let post = "POST \(large) HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\nContent-Length: 0\r\n\r\n"
        let posted = try await RawConnection.firstAnswer(to: post, port: app.port)
        #expect(posted.head.hasPrefix("HTTP/1.1 503") && posted.body.contains("outcomeUnknown"))
        let other = try await RawConnection.firstAnswer(to: request("203.0.113.10"), port: app.port)
        #expect(other.head.hasPrefix("HTTP/1.1 200"))
      }
      while app.frontEnd.budgets.answers.taken > 0 { await Task.yield() }
    }
  }

  @Test(.enabled(if: HTTP2Peer.isAvailable, "needs python3 with the package h2"))
  func streamsShareTheBudget() async throws {
    let answers = ScriptedAnswers()
    try await Harness.run({
      answers.install(in: &$0)
      $0.configuration.maximumAnswerBytesInMemory = 1 << 20
    }) { app in
      let outcome = try await HTTP2Peer.run("answers_beyond_the_budget", port: app.port)["answers_beyond_the_budget"]
      #expect(outcome == "1 200, 3 200, other 1 503, then 5 200")
      while app.frontEnd.budgets.answers.taken > 0 { await Task.yield() }
    }
  }

  @Test(.enabled(if: HTTP2Peer.isAvailable, "needs python3 with the package h2"))
  func aStreamIsProducedAsItsWindowOpens() async throws {
    let answers = ScriptedAnswers()
    try await Harness.run({ answers.install(in: &$0) }) { app in
      let outcome = try await HTTP2Peer.run("answer_in_parts", port: app.port)["answer_in_parts"]
      // The window is closed, so that the second of the parts waits for room.
      #expect(outcome == "1 200, 0 bytes, then 1000000 bytes, 3 404")
      #expect(answers.atFirst == 1)
      let broken = try await HTTP2Peer.run("broken_answer", port: app.port)["broken_answer"]
      #expect(broken == "1 200, 1 INTERNAL_ERROR, 3 404")
      while app.frontEnd.budgets.answers.taken > 0 { await Task.yield() }
    }
  }

  @Test func aClientMustReadFasterThanTheSlowestRate() {
    #expect(ReadingRate.leastBytes(of: 1_000_000, within: .seconds(75)) == 76_800)
    #expect(ReadingRate.leastBytes(of: 1000, within: .seconds(75)) == 500)
    #expect(ReadingRate.leastBytes(of: 1, within: .seconds(75)) == 1)
    var answer = HTTP2Answer(ByteBuffer(repeating: 0x61, count: 1_000_000))
    #expect(!answer.isSlow(after: .seconds(75)), "not seen yet")
    answer.look()
    // A byte now and then.
    for _ in 0..<75 { _ = answer.next(upTo: 1) }
    #expect(answer.isSlow(after: .seconds(75)))
    answer.look()
    _ = answer.next(upTo: 76_800)
    #expect(!answer.isSlow(after: .seconds(75)))
  }

  @Test func aChargeIsOneAnswers() {
    let budget = ByteBudget(limit: 100_000, largest: 25_000)
    var charge = AnswerCharge(budget)
    // One that is larger than every share can be sent nevertheless.
    for (bytes, taken) in [(1000, 0), (20_000, 20_000), (9_000_000, 25_000)] {
      let isCharged = charge.take(bytes, of: .unknown)
      #expect(isCharged)
      #expect(budget.taken == taken)
    }
    charge.release()
    charge.release()
    #expect(budget.taken == 0)
  }

  @Test func thePulseStreamsUntilItsCallerIsRevoked() async throws {
    let pulse = CountingPulse()
    let authenticator = RevocableAuthenticator(until: { pulse.count < 5 })
    try await Harness.run({
      $0.pulse = pulse
      $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
    }) { app in
      let reply = try await app.request(.get, "/api/pulse", headers: [("Accept", "text/event-stream")])
      #expect(reply.status == 200 && reply["Content-Type"] == "text/event-stream")
      #expect(reply["X-Accel-Buffering"] == "no")
      let events = (1...5).map { "data: {\"second\":\($0)}\n\n" }.joined()
      #expect(reply.text == "retry: 0\n" + events)
      pulse.isFull = true
      let refused = try await app.request(.get, "/api/pulse", headers: [("Accept", "text/event-stream")])
      #expect(refused.status == 401)
    }
  }
}

/// Answers `GET /answers/parts?count&size&length&fails` with a body in parts, and `/answers/whole?size` with one at
/// hand.
final class ScriptedAnswers: ProtocolRoutes {
  private struct Failure: Error {}

  private let bytes = Atomic(0)
  private let parts = Atomic(0)

  /// The bytes that were produced.
  var produced: Int { bytes.load(ordering: .relaxed) }
  /// The parts that were produced when `/answers/look` was asked.
  var atFirst: Int { parts.load(ordering: .relaxed) }

  private let begun = Atomic(0)

  func install(in setup: inout Harness.Setup) { setup.protocols = [{ [self] _ in self }] }

  func pattern(of exchange: Exchange) -> String? { exchange.path.hasPrefix("/answers/") ? "/answers" : nil }

  func respond(to exchange: Exchange) async throws -> Answer {
    let query = try exchange.query()
    func value(_ name: String) -> Int? { query.first { $0.name == name }.flatMap { Int($0.value) } }
    let part = ByteBuffer(repeating: UInt8(ascii: "a"), count: value("size") ?? 0)
    switch exchange.path {
    case "/answers/whole": return Answer(status: .ok, body: .bytes(part))
    case "/answers/look":
      parts.store(begun.load(ordering: .relaxed), ordering: .relaxed)
      return Answer(status: .notFound)
    default: break
    }
    let (count, fails) = (value("count") ?? 0, value("fails") != nil)
    let body = AnswerBody.inParts(length: value("length")) { [self] writer in
      for _ in 0..<count {
        begun.add(1, ordering: .relaxed)
        bytes.add(part.readableBytes, ordering: .relaxed)
        try await writer.write(part)
      }
      if fails { throw Failure() }
    }
    return Answer(status: .ok, body: body)
  }

  func answer(to refusal: Refusal, of exchange: Exchange) -> Answer { Answer(status: refusal.status) }
}

/// A pulse that beats as often as it is asked.
private final class CountingPulse: PulseSource {
  private let seconds = Atomic(0)
  private let full = Atomic(false)

  var count: Int { seconds.load(ordering: .relaxed) }
  var isFull: Bool {
    get { full.load(ordering: .relaxed) }
    set { full.store(newValue, ordering: .relaxed) }
  }

  func snapshot(of hub: HubName) throws -> [UInt8] { [] }

  func next(of hub: HubName) async throws -> [UInt8]? {
    if isFull { return nil }
    return Array("{\"second\":\(seconds.add(1, ordering: .relaxed).newValue)}".utf8)
  }
}

/// Admits everybody until its condition fails.
private struct RevocableAuthenticator: Authenticator {
  let challenge = BasicCredentials.challenge
  private let isGood: @Sendable () -> Bool

  init(until isGood: @escaping @Sendable () -> Bool) { self.isGood = isGood }

  func authenticate(_ credentials: Credentials, hub: HubName, from origin: LoginOrigin) async throws -> Principal? {
    isGood() ? Principal(user: "opal", scopes: Set(Scope.allCases)) : nil
  }
}
