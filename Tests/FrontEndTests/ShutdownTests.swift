import FanfareCore
import Foundation
import Logging
import NIOCore
import RDKafka
import ServiceLifecycle
import Support
import Synchronization
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct ShutdownTests {
  /// A sink that answers after `release()`.
  private final class WaitingSink: SendSink {
    private let asked = AsyncStream<Void>.makeStream()
    private let released = AsyncStream<Void>.makeStream()

    func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
      asked.continuation.yield()
      // Detached: like the producer, it keeps waiting if the request is cancelled.
      await Task.detached { [stream = released.stream] in for await _ in stream { break } }.value
      return records.map { .success(RecordPosition(topic: $0.topic, partition: 0, offset: 0)) }
    }

    func waitUntilAsked() async { for await _ in asked.stream { break } }
    func release() { released.continuation.yield() }
  }

  private func frontEnd(
    over temporary: TemporaryRegistry, sink: any SendSink = RecordingSink(),
    configure: (inout FrontEndConfiguration) -> Void = { _ in }
  ) throws -> FrontEnd {
    var configuration = FrontEndConfiguration()
    configuration.port = 0
    configure(&configuration)
    return try FrontEnd(
      configuration: configuration,
      hubs: [FrontEndHub(name: .default, authenticators: [try DemoAuthenticator(boundTo: configuration.host)])],
      dependencies: Harness.Setup(sink: sink).dependencies(over: temporary.registry), logger: TestKafka.quietLogger)
  }

  /// Runs a front end that `body` shuts down.
  private func run(
    sink: any SendSink = RecordingSink(), configure: (inout FrontEndConfiguration) -> Void = { _ in },
    _ body: (Harness, ServiceGroup) async throws -> Void
  ) async throws {
    let temporary = try TemporaryRegistry()
    let frontEnd = try frontEnd(over: temporary, sink: sink, configure: configure)
    let services = ServiceGroup(services: [frontEnd], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await services.run() }
      let app = Harness(
        port: try await frontEnd.boundPort(), frontEnd: frontEnd, registry: temporary.registry, clock: ManualClock())
      try await body(app, services)
      try await group.waitForAll()
    }
  }

  @Test func openRequestIsAnsweredDuringShutdown() async throws {
    let sink = WaitingSink()
    try await run(sink: sink) { app, services in
      async let reply = app.request(.post, "/api/sends", body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#)
      await sink.waitUntilAsked()
      await services.triggerGracefulShutdown()
      sink.release()
      let status = try await reply.status
      #expect(status == 202)
    }
  }

  /// A client that gets a part of its answer would post the batch again.
  /// The longer body is handled as parts.
  @Test(arguments: [31_000, 32_768]) func slowReaderGetsItsWholeAnswerDuringShutdown(lines: Int)
    async throws
  {
    try await run { app, services in
      let body = String(repeating: lines > 32_000 ? "xx\n" : "x\n", count: lines)
      let batch =
        "POST /api/sends/batch HTTP/1.1\r\nHost: x\r\nAuthorization: \(Harness.basic("alice", "alice"))\r\n"
        + "Content-Type: application/x-ndjson\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
      let text = try await RawConnection.exchange(
        batch, port: app.port,
        pausing: {
          // An idle connection is closed at once; when it ends, the other one has been notified too.
          _ = try await RawConnection.exchange(
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n", port: app.port,
            pausing: {
              await services.triggerGracefulShutdown()
            })
        })
      #expect(text.hasPrefix("HTTP/1.1 200"))
      // Outside of #expect, which would print ten megabytes.
      let count = text.utf8.count { $0 == UInt8(ascii: "\n") }
      let head = RawConnection.split(String(text.prefix(2000)))[0].head.utf8.count { $0 == UInt8(ascii: "\n") } + 2
      #expect(count - head == lines)
    }
  }

  /// Nothing that a stranger leaves unfinished may delay the shutdown.
  @Test(arguments: [
    "", "GET / HTTP/1.1\r\nHost", "POST /api/sends HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
  ])
  func unfinishedRequestOfAStrangerDoesNotDelayShutdown(text: String) async throws {
    try await run(configure: {
      $0.drainTimeout = .seconds(3600)
      $0.bodyTimeout = .seconds(3600)
    }) { app, services in
      let complete = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
      // The answer to the complete request shows that the server has read the connection.
      _ = try await RawConnection.exchange(
        complete + text, port: app.port,
        pausing: {
          await services.triggerGracefulShutdown()
        })
    }
  }

  @Test func clientThatReadsNothingDoesNotPreventShutdown() async throws {
    let temporary = try TemporaryRegistry()
    let frontEnd = try frontEnd(over: temporary, configure: { $0.drainTimeout = .milliseconds(100) })
    let services = ServiceGroup(services: [frontEnd], logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await services.run() }
      let requests = String(repeating: "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", count: 500)
      _ = try await RawConnection.exchange(
        requests, port: try await frontEnd.boundPort(),
        pausing: {
          await services.triggerGracefulShutdown()
          try await group.waitForAll()
        })
    }
  }

  @Test func runFailsIfThePortIsInUse() async throws {
    try await Harness.run { app in
      let second = try frontEnd(over: try TemporaryRegistry(), configure: { $0.port = app.port })
      let error = await #expect(throws: IOError.self) { try await second.run() }
      #expect(error?.errnoCode == EADDRINUSE)
      await #expect(throws: FrontEndError.self) { try await second.boundPort() }
    }
  }
}
