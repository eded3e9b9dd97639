import FanfareCore
import Logging
import RDKafka
import Worker

/// A whole worker, whose Kafka, registry and push service answer at once and from memory.
final class WorkerBench: Sendable {
  private let source = MemorySource()

  /// A worker that runs and owns a partition.
  init() async throws {
    var configuration = WorkerConfiguration()
    // What is remembered fills up before the measurement begins, and no tick falls into it.
    configuration.limits.rememberedSends = 1000
    configuration.times.tickInterval = .seconds(3600)
    configuration.times.commitInterval = .zero
    let worker = Worker(
      configuration: configuration, consumer: source, producer: MemorySink(), broadcastProducer: MemorySink(),
      registry: MemoryRegistry(),
      senders: [.default: [.apns: InstantSender(fields: try Specimen.apnsFields())]], clock: StandingClock(),
      logger: Logger(label: "benchmark") { _ in SwiftLogNoOpLogHandler() })
    // Lives as long as the process does.
    Task { try await worker.run() }
    source.yield(.assigned([Specimen.partition], Rebalance {}))
  }

  /// The records of so many sends, each to a user of its own.
  func records(_ count: Int) -> [ConsumedRecord] {
    let first = source.takeOffsets(count)
    return (0..<count).map { number in
      let send = Specimen.send(to: "user-\(number)@example.com")
      return Specimen.record(
        at: first + Int64(number), value: send.encoded(), key: send.audience.recordKey(of: send.id, hub: send.hub))
    }
  }

  /// Lets records come and waits until the last is settled.
  func run(_ records: [ConsumedRecord]) async {
    guard let last = records.last else { return }
    let settled = Countdown(1)
    source.expect(last.offset + 1, settled)
    source.yield(.records(records))
    await settled.wait()
  }
}

/// A clock that stands still: the present is that of the specimens.
private struct StandingClock: WallClock {
  func now() -> UnixTime { Specimen.now }
}
