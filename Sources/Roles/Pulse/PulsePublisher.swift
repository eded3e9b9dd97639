import FanfareCore
import FoundationEssentials
import Logging
import Operations
package import RDKafka
import ServiceLifecycle
import Synchronization
import Worker

/// Reports this process on the pulse topic, once a second.
///
/// Nothing waits for it. At most one record is on its way; while Kafka does not take it, the next ones are dropped. It
/// has a Kafka client of its own, so that neither its errors nor its queue concern the role's clients.
package final class PulsePublisher: Service, NamedService {
  let name = "pulse"
  /// The time between two records.
  private static let interval = Duration.seconds(1)
  /// Health is asked for in each fifth record: the checks ask Kafka and the databases.
  private static let recordsPerCheck = 5

  private struct State {
    var isOnItsWay = false
    var hasComplained = false
    var problems: [Pulse.Problem] = []
  }

  private let process: Pulse.Process
  private let topic: String
  private let producer: Producer
  private let health: HealthRegistry
  private let metrics: PrometheusMetrics
  private let segments: (@Sendable () -> [Pulse.Segments])?
  private let clock: any WallClock
  private let logger: Logger
  private let state = Mutex(State())

  /// Throws `configuration`, naming the key.
  init(
    role: String, topic: String, client: KafkaClientConfiguration, health: HealthRegistry,
    metrics: PrometheusMetrics, segments: (@Sendable () -> [Pulse.Segments])?, clock: any WallClock, logger: Logger
  ) throws(RDKafkaError) {
    var production = ProducerConfiguration(client: client)
    production.refusesWhileUnreachable = true
    production.queueRecords = 4
    production.closeTimeout = .milliseconds(500)
    // The role's other clients report faults of Kafka.
    var silent = logger
    silent.logLevel = .critical
    producer = try Producer(configuration: production, logger: silent)
    process = Pulse.Process(
      id: RegistrationID.random().description, role: role, version: Build.version,
      host: ProcessInfo.processInfo.hostName, pid: ProcessInfo.processInfo.processIdentifier,
      startedAt: clock.now().milliseconds)
    (self.topic, self.health, self.metrics, self.segments) = (topic, health, metrics, segments)
    (self.clock, self.logger) = (clock, logger)
  }

  package func run() async throws {
    await withTaskGroup { group in
      group.addTask { [producer] in await producer.run() }
      // A producer that is cancelled instead of closed would drop the last word.
      await cancelWhenGracefulShutdown { [self] in
        var number = 0
        while !Task.isCancelled {
          if number % Self.recordsPerCheck == 0 { askHealth() }
          publish()
          number += 1
          do { try await Task.sleep(for: Self.interval) } catch { return }
        }
      }
      publish(isLast: true)
      await producer.close(timeout: .milliseconds(500))
    }
  }

  /// Asks for the health without waiting for it: a check may hang for its whole time limit.
  private func askHealth() {
    Task { [self] in
      let report = await health.readiness()
      state.withLock { state in
        state.problems = report.checks.flatMap { check in
          check.problems.map { Pulse.Problem(check: check.name, problem: $0.text, hubs: $0.hubs) }
        }
      }
    }
  }

  private func publish(isLast: Bool = false) {
    let problems: [Pulse.Problem]? = state.withLock { state in
      guard !state.isOnItsWay || isLast else { return nil }
      state.isOnItsWay = true
      return state.problems
    }
    guard let problems else { return }
    var pulse = Pulse(process: process, time: clock.now())
    pulse.isLast = isLast
    pulse.problems = problems
    if !isLast {
      pulse.report(metrics.samples())
      pulse.segments = Array((segments?() ?? []).prefix(Pulse.maximumSegments))
    }
    do {
      let record = ProducerRecord(topic: topic, key: Array(process.id.utf8), event: try pulse.record())
      producer.submit([record]) { [self] results in settle(results.first.map { $0.map { _ in } }) }
    } catch {
      settle(.failure(error))
    }
  }

  private func settle(_ result: Result<Void, some Error>?) {
    let isFirst = state.withLock { state in
      state.isOnItsWay = false
      guard case .failure? = result, !state.hasComplained else { return false }
      state.hasComplained = true
      return true
    }
    guard isFirst, case .failure(let error)? = result else { return }
    logger.notice(
      "This process is missing on the operations page: its pulse could not be produced",
      metadata: [LogKeys.topic: "\(topic)", LogKeys.error: "\(error)"])
  }
}

extension RoleServices {
  /// Lets the process report itself on the pulse topic. Call it after `addOperations`.
  ///
  /// The last word comes after all other services have stopped.
  package mutating func addPulse(_ role: String, _ runtime: Runtime, client: KafkaClientConfiguration) throws {
    let publisher = try PulsePublisher(
      role: role, topic: runtime.settings.kafka.topics.pulse, client: client,
      health: health ?? runtime.health(checks: checks), metrics: runtime.metrics, segments: segments,
      clock: runtime.clock, logger: runtime.logger)
    services.insert(publisher, at: 0)
  }
}
