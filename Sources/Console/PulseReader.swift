package import FanfareCore
import FrontEnd
package import Logging
import Operations
package import RDKafka
import ServiceLifecycle

/// Reads the pulse topic from its end, and aggregates it for all pages of this process.
///
/// It is a consumer group of its own that commits nothing, because each front end reads all records. An actor, so that
/// neither reading nor the making of documents runs on an event loop; each document is made at most once a second, for
/// all callers.
package actor PulseReader: Service, PulseSource {
  /// The most callers that wait for the next second.
  package static let maximumWaiting = 200

  private nonisolated let consumer: Consumer
  private nonisolated let clock: any WallClock
  private nonisolated let logger: Logger
  private var board: PulseBoard
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var hasEnded = false
  /// The documents of this second, by hub.
  private var snapshots: [HubName: [UInt8]] = [:]
  private var events: [HubName: [UInt8]] = [:]

  /// `hooks` are the hubs of each hook. Throws `configuration`, naming the key.
  package init(
    client: KafkaClientConfiguration, topics: Topics, hooks: [String: Set<HubName>], clock: any WallClock,
    logger: Logger
  ) throws(RDKafkaError) {
    var configuration = ConsumerConfiguration(
      client: client, groupID: "\(topics.prefix).console.\(RegistrationID.random())", topics: [topics.pulse])
    configuration.start = .latest
    configuration.closeTimeout = .seconds(1)
    configuration.prefetchRecords = 1000
    configuration.readsHeaders = false
    // The role's other clients report faults of Kafka.
    var silent = logger
    silent.logLevel = .critical
    consumer = try Consumer(configuration: configuration, logger: silent)
    board = PulseBoard(scope: PulseScope(topics: topics, hooks: hooks))
    (self.clock, self.logger) = (clock, logger)
  }

  package func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      await withTaskGroup { group in
        group.addTask { [consumer] in await consumer.run() }
        group.addTask { [self] in await tick() }
        await consume()
        group.cancelAll()
      }
    }
    hasEnded = true
    wake()
  }

  // Concurrent: reading a record takes milliseconds, during which callers get their documents.
  @concurrent private nonisolated func consume() async {
    consumer.grant(records: 1000)
    for await event in consumer.events {
      switch event {
      case .records(let records):
        for record in records {
          if let pulse = Pulse(record: record.value) { await receive(pulse) }
        }
        consumer.grant(records: records.count)
      case .assigned(_, let rebalance), .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
      case .failed(let error):
        logger.debug("The pulse topic cannot be read at the moment", metadata: [LogKeys.error: "\(error)"])
      }
    }
  }

  private func receive(_ pulse: Pulse) { board.receive(pulse, at: clock.now()) }

  private func tick() async {
    while !Task.isCancelled {
      do { try await Task.sleep(for: .seconds(1)) } catch { return }
      board.tick(at: clock.now())
      wake()
    }
  }

  /// Begins the next second.
  private func wake() {
    (snapshots, events) = ([:], [:])
    for continuation in waiting { continuation.resume() }
    waiting = []
  }

  package func snapshot(of hub: HubName) async throws -> [UInt8] {
    if let known = snapshots[hub] { return known }
    let snapshot = try document(of: hub, isWhole: true)
    snapshots[hub] = snapshot
    return snapshot
  }

  package func next(of hub: HubName) async throws -> [UInt8]? {
    if !hasEnded {
      guard waiting.count < Self.maximumWaiting else { return nil }
      await withCheckedContinuation { waiting.append($0) }
    }
    if let known = events[hub] { return known }
    let event = try document(of: hub, isWhole: false)
    events[hub] = event
    return event
  }

  private func document(of hub: HubName, isWhole: Bool) throws -> [UInt8] {
    try PulseSnapshot(of: board, hub: hub.rawValue, isWhole: isWhole, at: clock.now()).json
  }
}

/// The metadata keys of this target's log lines.
enum LogKeys {
  static let error = "error"
}
