import EmbeddedKafka
import FanfareCore
import Foundation
import Logging
import RDKafka
import ServiceLifecycle
import Support
import Testing

@testable import Roles

/// The log of a worker's Kafka clients while Kafka is away.
@Suite struct KafkaAwayTests {
  /// Passes events on to the log of the process, and tells of the reports of the outage.
  private struct Reporting: LogHandler {
    var inner: any LogHandler
    let reported: AsyncStream<Report>.Continuation

    var metadata: Logger.Metadata {
      get { inner.metadata }
      set { inner.metadata = newValue }
    }
    var logLevel: Logger.Level {
      get { inner.logLevel }
      set { inner.logLevel = newValue }
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { inner[metadataKey: key] }
      set { inner[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
      inner.log(event: event)
      if KafkaAwayTests.reports.contains("\(event.message)") {
        reported.yield(Report(handler: inner, event: event))
      }
    }
  }

  private struct Report {
    let handler: any LogHandler
    let event: LogEvent

    func log() { handler.log(event: event) }
  }

  /// The messages with which a client reports an outage.
  private static let reports = ["No Kafka broker is reachable", "Connection to a Kafka broker failed"]

  /// The clients try again every few milliseconds instead of every two seconds, so that all of them report soon. Then
  /// the clock of the log moves by a minute, in which the reports are repeated: the clients' own would come by their
  /// clock.
  @Test(.timeLimit(.minutes(1))) func clientsOfAWorkerTogetherWriteFewerThanTwentyLinesAMinute() async throws {
    let topics = Topics(retryDelays: Topics.defaultRetryDelays).created
    let cluster = try EmbeddedCluster(
      topics: topics.map { TopicSpecification(name: $0, partitions: 1) }, logger: TestKafka.quietLogger)
    defer { cluster.close() }
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-away-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let settings = try Settings.load(
      file: nil,
      environment: [
        "FANFARE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers,
        "FANFARE_REGISTRY_PATH": directory.appending(path: "registry").path,
      ])
    var client = KafkaClientConfiguration(
      bootstrapServers: cluster.bootstrapServers, clientID: "away", profile: .embedded)
    client.profile.reconnectBackoff = .milliseconds(1)
    client.profile.maximumReconnectBackoff = .milliseconds(10)
    let (output, clock) = (LogOutput(), ManualClock())
    let (reports, reported) = AsyncStream.makeStream(of: Report.self)
    let log = ProcessLog(format: .logfmt, clock: clock, write: { output.take($0) })
    let logger = Logger(label: "fanfare.worker") {
      Reporting(inner: log.handler(label: $0, level: .info), reported: reported)
    }
    // Two producers, and consumers of the sends and of three retry topics.
    let worker = try WorkerRole.services(
      Runtime(settings: settings, logger: logger), client: client,
      registry: try await settings.registry.open(role: "worker", logger: TestKafka.quietLogger), senders: [:])
    let group = ServiceGroup(services: worker.services, logger: TestKafka.quietLogger)
    let running = Task { try await group.run() }
    try cluster.setBroker(isUp: false)
    var repeated: [String: Report] = [:]
    var outages = 0
    for await report in reports {
      let message = "\(report.event.message)"
      repeated[message] = report
      if message == Self.reports[0] { outages += 1 }
      if outages == 6, repeated.count == Self.reports.count { break }
    }
    for _ in 0..<6 {
      for report in repeated.values { report.log() }
      clock.advance(by: .seconds(10))
      log.flush()
    }
    log.finish()
    let written = output.lines
    try cluster.setBroker(isUp: true)
    await group.triggerGracefulShutdown()
    try await running.value
    let lines = written
    #expect(lines.count < 20, "\(lines.joined())")
    // Whatever each client says of each of its connections: once, and then a count for each window of half a minute.
    let connections = lines.filter { $0.contains("Connection to a Kafka broker failed") }
    #expect(connections.count { !$0.contains("repeated=") } == 1 && connections.count <= 4, "\(lines.joined())")
    #expect(!lines.contains { $0.contains("librdkafka") || $0.contains("_TRANSPORT") }, "\(lines.joined())")
    #expect(lines.count { $0.contains("level=error") } == 1, "\(lines.joined())")
    #expect(lines.contains { $0.contains(#"level=error msg="No Kafka broker is reachable""#) })
    #expect(lines.contains { $0.contains("repeated=") })
  }
}
