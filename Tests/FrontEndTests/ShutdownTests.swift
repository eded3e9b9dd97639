import FanfareCore
import Logging
import RDKafka
import ServiceLifecycle
import Support
import Synchronization
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct ShutdownTests {
  /// A sink that answers when it is told to.
  private final class WaitingSink: SendSink {
    private let asked = AsyncStream<Void>.makeStream()
    private let released = AsyncStream<Void>.makeStream()

    func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
      asked.continuation.yield()
      // A task of its own: like the producer, it does not stop waiting when the request is cancelled.
      await Task.detached { [stream = released.stream] in for await _ in stream { break } }.value
      return records.map { .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0)) }
    }

    func waitUntilAsked() async { for await _ in asked.stream { break } }
    func release() { released.continuation.yield() }
  }

  @Test func whatWasBegunIsAnsweredBeforeTheEnd() async throws {
    let temporary = try TemporaryRegistry()
    let sink = WaitingSink()
    var configuration = FrontEndConfiguration()
    configuration.port = 0
    let frontEnd = try FrontEnd(
      configuration: configuration,
      hubs: [FrontEndHub(name: .default, authenticator: try DemoAuthenticator(boundTo: configuration.host))],
      dependencies: FrontEnd.Dependencies(
        registry: temporary.registry, secureStore: temporary.registry, claims: temporary.registry,
        broadcasts: temporary.registry, schedule: temporary.registry, history: ScriptedHistory(),
        sink: sink),
      logger: TestKafka.quietLogger)
    let services = ServiceGroup(services: [frontEnd], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await services.run() }
      let app = Harness(port: try await frontEnd.boundPort(), registry: temporary.registry, clock: ManualClock())
      async let reply = app.request(.post, "/api/sends", body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#)
      await sink.waitUntilAsked()
      await services.triggerGracefulShutdown()
      sink.release()
      #expect(try await reply.status == 202)
      try await group.waitForAll()
    }
  }

  @Test func aPortThatIsTakenIsSaidSo() async throws {
    try await Harness.run { app in
      await #expect(throws: (any Error).self) {
        try await Harness.run({ $0.configuration.port = app.port }) { _ in }
      }
    }
  }
}
