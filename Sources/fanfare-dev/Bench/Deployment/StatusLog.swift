import FanfareCore
import Logging
import RDKafka
import Synchronization

/// The status topic: how many records it has while a worker writes it, and afterwards what they say.
///
/// Nobody reads along, who would take a share of the machine from the worker that is measured: the brokers are asked
/// where the partitions end, which is behind the last record that is acknowledged.
struct StatusLog: Sendable {
  /// How far the topic has come.
  struct Mark: Sendable {
    /// The end of each partition.
    fileprivate var ends: [TopicPartition: Int64]

    /// Records up to there. The topic is the run's own: each partition begins at 0.
    var count: Int { ends.values.reduce(0) { $0 + Int($1) } }
  }

  private let reader: LogReader
  private let topic: String

  /// The status topic of `topics`. Asks nobody yet.
  init(client: KafkaClientConfiguration, topics: Topics, logger: Logger) throws {
    reader = try LogReader(client: client, logger: logger)
    topic = topics.status
  }

  /// Suspends until there are so many records. Throws what the brokers say, and when the task is cancelled.
  func when(_ count: Int) async throws -> Mark {
    let partitions = try await reader.partitions(of: [topic])
    while true {
      let ends = try await reader.ends(of: partitions).map { ($0.partition, max(0, $0.offset)) }
      let mark = Mark(ends: Dictionary(ends) { max($0, $1) })
      if mark.count >= count { return mark }
      try await Task.sleep(for: Self.pause)
    }
  }

  /// The records between two marks; without them, all there are. Throws what is wrong with the first that is no status
  /// record.
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
  /// How many devices have got what was sent.
  var delivered: Int { counts[.delivered] + devices.count { $0.outcome == .delivered } }
}

/// Reads the status topic of broadcasts along with the worker, a record for hundreds of devices, and tells when there
/// are enough of these.
final class DeviceCounter: Sendable {
  private struct State {
    var devices = 0
    var delivered = 0
    var failure: (any Error)?
    var waiters: [(devices: Int, resume: @Sendable ((any Error)?) -> Void)] = []
  }

  private let consumer: Consumer
  private let state = Mutex(State())

  /// A counter in a consumer group of its own.
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

  /// Suspends until the records name so many devices, and gives what `sample` says of their number at that very moment.
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

  /// How many devices the records have named.
  var devices: Int { state.withLock { $0.devices } }

  /// How many of them have got what was sent.
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
