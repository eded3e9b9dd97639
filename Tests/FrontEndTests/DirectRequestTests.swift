import FanfareCore
import Foundation
import RDKafka
import Registry
import ServiceLifecycle
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// Requests that are answered without the router, from the memory of a connection to Kafka's acknowledgement.
@Suite(.timeLimit(.minutes(2))) struct DirectRequestTests {
  private static let send = #"{"to":{"user":"bob"},"message":{"body":"b"}}"#

  /// Holds the acknowledgements of direct requests back until the test releases them.
  private final class GatedSink: SendSink {
    typealias Completion = @Sendable (Result<RecordPosition, RDKafkaError>) -> Void

    private let asked = AsyncStream<Void>.makeStream()
    private let waiting = Mutex<[Completion]>([])

    func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
      records.map { .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0)) }
    }

    func submit(_ record: ProducerRecord, completion: @escaping Completion) {
      waiting.withLock { $0.append(completion) }
      asked.continuation.yield()
    }

    func waitUntilAsked() async { for await _ in asked.stream { break } }

    func release(_ result: Result<RecordPosition, RDKafkaError>) {
      for completion in waiting.withLock({ $0 }) { completion(result) }
    }
  }

  private static let position = RecordPosition(topic: "t", partition: 0, offset: 0)

  private func post(_ credentials: String = Harness.basic("alice", "alice"), fields: String = "") -> String {
    "POST /api/sends HTTP/1.1\r\nHost: x\r\nAuthorization: \(credentials)\r\nContent-Type: application/json\r\n"
      + "\(fields)Content-Length: \(Self.send.utf8.count)\r\n\r\n\(Self.send)"
  }

  private func status(_ answer: (head: String, body: String)) -> Substring { answer.head.dropFirst(9).prefix(3) }

  @Test func changedPasswordFileCountsAtOnceOnAnOpenConnection() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-direct-\(UUID().uuidString)").path
    // Made with `htpasswd -nbB` at low cost.
    let hash = #"$2y$04$MI0972Rll9Ecwmd0N6d2SuQ8EExHQJwNVTeZ1xwW4/vOhWVqHluoS"#
    let other = #"$2y$04$m0O5zpk4c31Z4Yyp.LWbF.UBmwQRDzCklccB3ahQVkxiOPZGsIVZ6"#
    try "brigitte:\(hash)".write(toFile: path, atomically: true, encoding: .utf8)
    // Scratch file.
    defer { try? FileManager.default.removeItem(atPath: path) }
    let time = Mutex(ContinuousClock.now)
    var configuration = HtpasswdAuthenticator.Configuration()
    configuration.now = { time.withLock { $0 } }
    let authenticator = try HtpasswdAuthenticator(
      path: path, configuration: configuration, logger: TestKafka.quietLogger)
    let sink = CountingSink()
    try await Harness.run({
      $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
      $0.sink = sink
    }) { app in
      let request = post(Harness.basic("brigitte", "correct horse: battery"))
      try await RawConnection.converse(port: app.port) { exchange in
        for _ in 0..<3 { #expect(try await status(exchange(request)) == "202") }
        #expect(sink.direct == 2)
        try "brigitte:\(other)".write(toFile: path, atomically: true, encoding: .utf8)
        time.withLock { $0 += .seconds(1) }
        #expect(try await status(exchange(request)) == "401")
        try "brigitte:\(hash)".write(toFile: path, atomically: true, encoding: .utf8)
        time.withLock { $0 += .seconds(1) }
        for _ in 0..<2 { #expect(try await status(exchange(request)) == "202") }
        #expect(sink.direct == 3)
        // A connection that is used all the time keeps its caller no longer than the file's users are remembered.
        for _ in 0..<4 {
          time.withLock { $0 += .milliseconds(900) }
          #expect(try await status(exchange(request)) == "202")
        }
      }
    }
  }

  @Test func revokedKeyStopsWorkingOnAnOpenConnection() async throws {
    let temporary = try TemporaryRegistry()
    let key = APIKey()
    let clock = ManualClock()
    try await temporary.registry.addAPIKey(
      StoredAPIKey(
        hub: .default, id: key.id, user: "shop", scopes: ["send:user"], digest: key.digest, createdAt: clock.now()))
    let authenticator = APIKeyAuthenticator(
      hub: .default, store: temporary.registry, clock: clock, logger: TestKafka.quietLogger)
    let sink = CountingSink()
    try await Harness.run({
      $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
      $0.sink = sink
    }) { app in
      let request = post("Bearer \(key.text)")
      try await RawConnection.converse(port: app.port) { exchange in
        for _ in 0..<3 {
          let answer = try await exchange(request)
          #expect(status(answer) == "202")
        }
        #expect(sink.direct == 2)
        #expect(try await temporary.registry.removeAPIKey(key.id, hub: .default))
        clock.advance(by: APIKeyVerifier.lifetime)
        #expect(try await status(exchange(request)) == "401")
      }
    }
  }

  @Test func memoryOfAConnectionIsOfOneCallerAndHub() async throws {
    let sink = CountingSink()
    let shop = try #require(HubName("shop"))
    try await Harness.run({
      $0.hubs = [HubName.default, shop].map { FrontEndHub(name: $0, authenticators: [Harness.authenticator]) }
      $0.sink = sink
    }) { app in
      try await RawConnection.converse(port: app.port) { exchange in
        for user in ["alice", "devon", "alice", "opal"] {
          for hub in ["", "/hubs/shop", "/hubs/none", "/hubs/default"] {
            let request = post(Harness.basic(user, user)).replacing("POST /api", with: "POST \(hub)/api")
            for _ in 0..<2 {
              let expected = hub == "/hubs/none" ? "401" : user == "devon" ? "403" : "202"
              let answer = try await exchange(request)
              #expect(status(answer) == expected)
            }
          }
        }
      }
      #expect(
        try sink.records.sends().map { $0.sender } == Array(repeating: "alice", count: 12)
          + Array(repeating: "opal", count: 6))
      // The first request of each caller in each hub is the router's.
      #expect(sink.direct == 18 - 4)
    }
  }

  @Test func credentialsAreRememberedByADigestOfTheirBytes() {
    let digest = CredentialsDigest(Array("Basic \u{e9}".utf8))
    #expect(digest == CredentialsDigest(Array("Basic \u{e9}".utf8)))
    #expect(digest != CredentialsDigest(Array("Basic e\u{301}".utf8)), "equivalent texts are different passwords")
  }

  @Test func sendRefusedByKafkaIsAnsweredDirectly() async throws {
    let failing = Mutex(false)
    let sink = CountingSink { _ in
      failing.withLock { $0 } ? RDKafkaError(code: .notPersisted, message: "no") : nil
    }
    try await Harness.run({
      $0.sink = sink
    }) { app in
      try await RawConnection.converse(port: app.port) { exchange in
        #expect(try await status(exchange(post())) == "202")
        failing.withLock { $0 = true }
        let answer = try await exchange(post(fields: "X-Request-Id: r-1\r\n"))
        #expect(status(answer) == "503")
        #expect(try JSON(answer.body.utf8)["code"] == "kafkaUnavailable")
        #expect(try JSON(answer.body.utf8)["requestId"] == "r-1")
        failing.withLock { $0 = false }
        #expect(try await status(exchange(post())) == "202")
        #expect(sink.direct > 0)
      }
    }
  }

  @Test func closedConnectionDropsItsAnswer() async throws {
    let sink = GatedSink()
    try await Harness.run({ $0.sink = sink }) { app in
      try await RawConnection.holding([post() + post()], port: app.port) { await sink.waitUntilAsked() }
      sink.release(.success(Self.position))
      #expect(try await app.request(.post, "/api/sends", body: Self.send).status == 202)
    }
  }

  @Test func openDirectRequestIsAnsweredDuringShutdown() async throws {
    let sink = GatedSink()
    let temporary = try TemporaryRegistry()
    var configuration = FrontEndConfiguration()
    configuration.port = 0
    let frontEnd = try FrontEnd(
      configuration: configuration, hubs: [FrontEndHub(name: .default, authenticators: [Harness.authenticator])],
      dependencies: Harness.Setup(sink: sink).dependencies(over: temporary.registry), logger: TestKafka.quietLogger)
    let services = ServiceGroup(services: [frontEnd], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await services.run() }
      let port = try await frontEnd.boundPort()
      let text = try await RawConnection.exchange(
        post() + post(), port: port,
        pausing: {
          await sink.waitUntilAsked()
          // An idle connection is closed at once; when it ends, the other one has been notified too.
          _ = try await RawConnection.exchange(
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n", port: port, pausing: { await services.triggerGracefulShutdown() })
          sink.release(.success(Self.position))
        })
      let answers = RawConnection.split(text)
      #expect(answers.map { status($0) } == ["202", "202"])
      #expect(answers.last?.head.lowercased().contains("\r\nconnection: close") == true)
      try await group.waitForAll()
    }
  }
}
