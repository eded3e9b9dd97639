import FanfareCore
import FrontEnd
import Logging
import RDKafka
import ServiceLifecycle

/// The scheduler of a front end, which produces scheduled sends when they are due.
///
/// `@unchecked Sendable`: see `World`.
final class SchedulerProcess: @unchecked Sendable {
  let process: SimulatedProcess
  private(set) var isOver = false
  private let group: ServiceGroup

  init(
    _ name: String, cluster: SimulatedCluster, registry: SimulatedRegistry, topics: Topics, check: Scheduling
  ) {
    let world = cluster.world
    let process = SimulatedProcess(name, in: world)
    self.process = process
    let logger = Logger(label: name) { _ in SwiftLogNoOpLogHandler() }
    let scheduler = Scheduler(
      store: RegistryConnection(of: process, to: registry),
      sink: WatchedSink(sink: SimulatedProducer(of: process, to: cluster), process: process, check: check),
      topics: topics, clock: process, delays: process,
      lease: {
        let lease = LeaseID.random(using: &world.chance)
        check.leases[lease] = process.name
        return lease
      }, logger: logger)
    group = ServiceGroup(services: [scheduler], logger: logger)
    let services = group
    process.start { [weak self] in
      do { try await services.run() } catch {
        if !process.isDead { check.violate("\(name) ends with an error: \(error)") }
      }
      if !process.isDead { world.note(.well(name, "process", "has ended")) }
      self?.isOver = true
    }
  }

  /// Asks the process to end in order.
  func stop() {
    let group = group
    process.start { await group.triggerGracefulShutdown() }
  }
}

/// A producer of scheduled sends that tells a check of each.
private struct WatchedSink: SendSink {
  let sink: SimulatedProducer
  let process: SimulatedProcess
  let check: Scheduling

  func send(_ records: [ProducerRecord]) async -> [SendResult] {
    await withCheckedContinuation { continuation in
      sink.submit(records) { continuation.resume(returning: $0) }
    }
  }

  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (SendResult) -> Void) {
    let send = check.submitted(record, by: process)
    sink.submit([record]) { [check] results in
      if case .failure = results[0] { check.failed(send) }
      completion(results[0])
    }
  }
}
