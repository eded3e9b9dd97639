package import FanfareCore
import FrontEnd
package import Logging
import Operations
package import RDKafka
import ServiceLifecycle
import Synchronization

/// Reads the pulse topic from its end, and aggregates it for all pages of this process.
///
/// It is a consumer group of its own that commits nothing, because each front end reads all records.
package final class PulseReader: Service, PulseSource {
  /// The most callers that wait for the next second.
  package static let maximumWaiting = 200

  private struct State {
    var board = PulseBoard()
    var waiting: [CheckedContinuation<Bool, Never>] = []
    var hasEnded = false
    /// The events of this second, by hub.
    var events: [HubName: [UInt8]] = [:]
  }

  private let consumer: Consumer
  private let clock: any WallClock
  private let logger: Logger
  private let state = Mutex(State())

  /// `prefix` is that of the topics and groups. Throws `configuration`, naming the key.
  package init(
    client: KafkaClientConfiguration, topics: Topics, clock: any WallClock, logger: Logger
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
    wake { $0.hasEnded = true }
  }

  private func consume() async {
    consumer.grant(records: 1000)
    for await event in consumer.events {
      switch event {
      case .records(let records):
        let pulses = records.compactMap { Pulse(record: $0.value) }
        let now = clock.now()
        state.withLock { state in for pulse in pulses { state.board.receive(pulse, at: now) } }
        consumer.grant(records: records.count)
      case .assigned(_, let rebalance), .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
      case .failed(let error):
        logger.debug("The pulse topic cannot be read at the moment", metadata: [LogKeys.error: "\(error)"])
      }
    }
  }

  private func tick() async {
    while !Task.isCancelled {
      do { try await Task.sleep(for: .seconds(1)) } catch { return }
      let now = clock.now()
      wake { $0.board.tick(at: now) }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiting = state.withLock { state in
      change(&state)
      state.events = [:]
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume(returning: true) }
  }

  package func snapshot(of hub: HubName) throws -> [UInt8] {
    let board = state.withLock { $0.board }
    return try PulseSnapshot(of: board, hub: hub.rawValue, isWhole: true, at: clock.now()).json
  }

  package func next(of hub: HubName) async throws -> [UInt8]? {
    let hasWaited: Bool = await withCheckedContinuation { continuation in
      let answer: Bool? = state.withLock { state in
        if state.hasEnded { return true }
        guard state.waiting.count < Self.maximumWaiting else { return false }
        state.waiting.append(continuation)
        return nil
      }
      if let answer { continuation.resume(returning: answer) }
    }
    guard hasWaited else { return nil }
    return try event(of: hub)
  }

  /// The state without history, made once a second for all callers.
  private func event(of hub: HubName) throws -> [UInt8] {
    let (known, board) = state.withLock { ($0.events[hub], $0.board) }
    if let known { return known }
    let event = try PulseSnapshot(of: board, hub: hub.rawValue, isWhole: false, at: clock.now()).json
    state.withLock { $0.events[hub] = event }
    return event
  }
}

/// The metadata keys of this target's log lines.
enum LogKeys {
  static let error = "error"
}
