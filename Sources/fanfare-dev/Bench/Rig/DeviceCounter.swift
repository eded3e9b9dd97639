import FanfareCore
import Logging
import RDKafka
import Synchronization

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
