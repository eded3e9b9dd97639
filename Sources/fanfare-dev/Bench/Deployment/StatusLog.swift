import FanfareCore
import Logging
import RDKafka
import Synchronization

/// Counts the records of the status topic while a worker writes it, and reads them afterwards.
///
/// A reader during the measurement would take CPU from the worker. So the count comes from the ends of the partitions,
/// which the brokers report and which lie behind the last acknowledged record.
struct StatusLog: Sendable {
  /// The ends of the topic at a moment.
  struct Mark: Sendable {
    /// The end of each partition.
    fileprivate var ends: [TopicPartition: Int64]

    /// The number of records up to these ends.
    ///
    /// Each partition begins at 0, because the topic belongs to this run.
    var count: Int { ends.values.reduce(0) { $0 + Int($1) } }
  }

  private let reader: LogReader
  private let topic: String

  /// Creates a reader of the status topic. It contacts no broker yet.
  init(client: KafkaClientConfiguration, topics: Topics, logger: Logger) throws {
    reader = try LogReader(client: client, logger: logger)
    topic = topics.status
  }

  /// Suspends until the topic has `count` records.
  ///
  /// Throws the brokers' errors, and when the task is cancelled.
  func when(_ count: Int) async throws -> Mark {
    let partitions = try await reader.partitions(of: [topic])
    while true {
      let ends = try await reader.ends(of: partitions).map { ($0.partition, max(0, $0.offset)) }
      let mark = Mark(ends: Dictionary(ends) { max($0, $1) })
      if mark.count >= count { return mark }
      try await Task.sleep(for: Self.pause)
    }
  }

  /// The records between two marks; without marks, all records.
  ///
  /// Throws the error of the first record that is not a status record.
  func records(from start: Mark? = nil, to end: Mark? = nil) async throws -> [StatusRecord] {
    var spans = try await reader.spans(of: [topic])
    for index in spans.indices {
      if let start { spans[index].start = max(spans[index].start, start.ends[spans[index].partition] ?? 0) }
      if let end { spans[index].end = end.ends[spans[index].partition] ?? 0 }
    }
    let scan = try reader.scan(spans)
    var statuses: [StatusRecord] = []
    while let records = try await scan.next() {
      for record in records { statuses.append(try StatusRecord.decode(record.value)) }
    }
    return statuses
  }

  private static let pause = Duration.milliseconds(5)
}

extension StatusRecord {
  /// The number of devices with the outcome delivered.
  var delivered: Int { counts[.delivered] + devices.count { $0.outcome == .delivered } }
}

/// Counts the devices in the status records of broadcasts while the worker writes them.
///
/// A record has hundreds of devices, so reading it during the measurement costs little.
final class DeviceCounter: Sendable {
  private struct State {
    var devices = 0
    var delivered = 0
    var failure: (any Error)?
    var waiters: [(devices: Int, resume: @Sendable ((any Error)?) -> Void)] = []
  }

  private let consumer: Consumer
  private let state = Mutex(State())

  /// Creates a counter with a consumer group of its own.
  init(client: KafkaClientConfiguration, topics: Topics, logger: Logger) throws {
    var configuration = ConsumerConfiguration(
      client: client, groupID: "\(topics.prefix).bench", topics: [topics.status])
    configuration.readsHeaders = false
    consumer = try Consumer(configuration: configuration, logger: logger)
  }

  /// Reads until the task is cancelled.
  func run() async {
    async let reading: Void = consumer.run()
    consumer.grant(records: Self.room)
    for await event in consumer.events {
      switch event {
      case .records(let records):
        consumer.grant(records: records.count)
        take(records)
      case .assigned(_, let rebalance), .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
      case .failed(let error): if error.isFatal { fail(error) }
      }
    }
    await reading
  }

  /// Suspends until the records name `devices` devices, and calls `sample` with their number then.
  func when<Sample: Sendable>(_ devices: Int, sample: @escaping @Sendable (Int) throws -> Sample) async throws -> Sample
  {
    try await withTaskCancellationHandler {
      try await wait(for: devices, sample: sample)
    } onCancel: {
      fail(BenchError("the status records name only \(self.devices) of \(devices) devices"))
    }
  }

  private func wait<Sample: Sendable>(for devices: Int, sample: @escaping @Sendable (Int) throws -> Sample) async throws
    -> Sample
  {
    try await withCheckedThrowingContinuation { continuation in
      let resume: @Sendable ((any Error)?) -> Void = { [self] error in
        if let error { return continuation.resume(throwing: error) }
        continuation.resume(with: Result { try sample(self.devices) })
      }
      let isDone = state.withLock { state in
        if state.devices < devices, state.failure == nil { state.waiters.append((devices, resume)) }
        return state.devices >= devices || state.failure != nil
      }
      if isDone { resume(state.withLock { $0.failure }) }
    }
  }

  /// The number of devices in the records so far.
  var devices: Int { state.withLock { $0.devices } }

  /// The number of these devices with the outcome delivered.
  var delivered: Int { state.withLock { $0.delivered } }

  private static let room = 20_000

  private func take(_ records: [ConsumedRecord]) {
    do {
      let statuses = try records.map { try StatusRecord.decode($0.value) }
      let due = state.withLock { state in
        for status in statuses {
          state.devices += status.devices.count + status.counts.total
          state.delivered += status.delivered
        }
        let devices = state.devices
        defer { state.waiters.removeAll { $0.devices <= devices } }
        return state.waiters.filter { $0.devices <= devices }
      }
      for waiter in due { waiter.resume(nil) }
    } catch {
      fail(error)
    }
  }

  private func fail(_ error: any Error) {
    let waiters = state.withLock { state in
      state.failure = error
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(error) }
  }
}
