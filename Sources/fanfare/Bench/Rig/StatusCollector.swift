import FanfareCore
import Logging
import RDKafka
import Synchronization

/// Reads the status topic from its beginning, in the order in which the records come, and tells when there are enough of them.
final class StatusCollector: Sendable {
  /// What is counted.
  enum Counting: Sendable {
    /// Records, which are dropped.
    case records
    /// Records, which are kept for `records()`.
    case keptRecords
    /// Devices, for which every record is decoded as it comes.
    case devices
  }

  private struct State {
    var values: [ArraySlice<UInt8>] = []
    var count = 0
    var failure: (any Error)?
    var waiters: [(count: Int, resume: @Sendable ((any Error)?) -> Void)] = []
  }

  private let consumer: Consumer
  private let counting: Counting
  private let state = Mutex(State())

  /// A collector in a consumer group of its own.
  init(client: KafkaClientConfiguration, topics: Topics, counting: Counting, logger: Logger) throws {
    var configuration = ConsumerConfiguration(client: client, groupID: "\(topics.prefix).bench", topics: [topics.status])
    configuration.readsHeaders = false
    consumer = try Consumer(configuration: configuration, logger: logger)
    self.counting = counting
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

  /// Suspends until so many records (or devices) have come, and gives what `sample` says at that very moment.
  func when<Sample: Sendable>(_ count: Int, sample: @escaping @Sendable () throws -> Sample) async throws -> Sample {
    try await withCheckedThrowingContinuation { continuation in
      let resume: @Sendable ((any Error)?) -> Void = { error in
        if let error { return continuation.resume(throwing: error) }
        continuation.resume(with: Result { try sample() })
      }
      let isDone = state.withLock { state in
        if state.count < count, state.failure == nil { state.waiters.append((count, resume)) }
        return state.count >= count || state.failure != nil
      }
      if isDone { resume(state.withLock { $0.failure }) }
    }
  }

  /// How many have come.
  var count: Int { state.withLock { $0.count } }

  /// What was kept, decoded. Throws what is wrong with the first record that is no status record.
  func records() throws -> [StatusRecord] { try state.withLock { $0.values }.map { try StatusRecord.decode($0) } }

  /// How many devices have got what was sent, by what was kept.
  func delivered() throws -> Int {
    try records().reduce(0) { $0 + $1.counts[.delivered] + $1.devices.count { $0.outcome == .delivered } }
  }

  private static let room = 20_000

  private func take(_ records: [ConsumedRecord]) {
    var weight = records.count
    if case .devices = counting {
      do {
        weight = try records.reduce(0) { sum, record in
          let status = try StatusRecord.decode(record.value)
          return sum + status.devices.count + status.counts.total
        }
      } catch {
        return fail(error)
      }
    }
    let due = state.withLock { [weight] state in
      state.count += weight
      if case .records = counting {} else { for record in records { state.values.append(record.value) } }
      let count = state.count
      defer { state.waiters.removeAll { $0.count <= count } }
      return state.waiters.filter { $0.count <= count }
    }
    for waiter in due { waiter.resume(nil) }
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
