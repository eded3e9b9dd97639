import Glibc
import Logging
import ServiceLifecycle
import Synchronization
package import UnixSignals

/// Runs the services of a role until a signal drains them, and logs what the end waits for.
///
/// The first SIGTERM or SIGINT shuts the services down, the last started first. A second one, at least a second later,
/// ends the process at once, with the status that a shell reports for a process that the signal ended.
package struct RoleRun: Sendable {
  /// The time between two log lines about what is waited for.
  private static let interval = Duration.seconds(5)

  /// The names of the services that run, by their number in the order of start.
  private final class Running: Sendable {
    private let names = Mutex<[Int: String]>([:])
    /// The name of the service whose error ends the others.
    private let first = Mutex<String?>(nil)
    private let services = Mutex<ServiceGroup?>(nil)

    /// The services; nil while the role starts.
    var group: ServiceGroup? { services.withLock(\.self) }

    func begin(_ group: ServiceGroup) { services.withLock { $0 = group } }

    var failed: String? { first.withLock { $0 } }

    func fail(_ name: String) { first.withLock { $0 = $0 ?? name } }

    func begin(_ number: Int, _ name: String) { names.withLock { $0[number] = name } }

    func end(_ number: Int) { names.withLock { $0[number] = nil } }

    /// The names in the order of shutdown: the first is the one that is waited for.
    var list: String { names.withLock { $0.sorted { $0.key > $1.key }.map(\.value) }.joined(separator: ", ") }
  }

  /// A service that is known by name while it runs.
  private struct Named: Service {
    let number: Int
    let service: any Service
    let running: Running

    func run() async throws {
      let name = (service as? any NamedService)?.name ?? "\(type(of: service))"
      running.begin(number, name)
      defer { running.end(number) }
      do { try await service.run() } catch {
        running.fail(name)
        throw error
      }
    }
  }

  let logger: Logger
  /// The log of the process, which is served as long as the role runs.
  let log: ProcessLog?
  /// Told about the role's health and its end; nil if no service manager started the process.
  let manager: ServiceManager?

  /// The signals that end a role, from now on. Those that come before `run` is called are not lost.
  package static func signals() async -> UnixSignalsSequence {
    await UnixSignalsSequence(trapping: [.sigterm, .sigint])
  }

  /// Runs the services that `start` creates. Throws the error that ends them, or the start, if no signal does.
  ///
  /// A signal during the start ends the process at once, with status 0: nothing is in flight yet.
  func run(_ signals: UnixSignalsSequence, _ start: () async throws -> RoleServices) async throws {
    let running = Running()
    let listening = Task { await listen(to: signals, running: running) }
    defer { listening.cancel() }
    let role = try await start()
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: role.services.enumerated().map { number, service in
          ServiceGroupConfiguration.ServiceConfiguration(service: Self.named(service, number * 1_000, running))
        }, logger: logger))
    running.begin(group)
    // Not one of the services: it has to report until the last of them has ended.
    let reporting = Task { if let manager, let health = role.health { await manager.report(health) } }
    defer { reporting.cancel() }
    let counting = Task { await log?.run() }
    defer {
      counting.cancel()
      log?.finish()
    }
    do { try await group.run() } catch {
      var metadata: Logger.Metadata = [LogKeys.error: "\(ErrorWords.text(error))"]
      if let failed = running.failed { metadata[LogKeys.service] = "\(failed)" }
      logger.error("Stopped because of an error", metadata: metadata)
      throw error
    }
    logger.notice("Stopped")
  }

  private static func named(_ service: any Service, _ number: Int, _ running: Running) -> any Service {
    guard let together = service as? Together else { return Named(number: number, service: service, running: running) }
    return Together(
      services: together.services.enumerated().map { named($0.element, number + $0.offset, running) })
  }

  private func listen(to signals: UnixSignalsSequence, running: Running) async {
    var first: ContinuousClock.Instant?
    await withTaskGroup { tasks in
      for await signal in signals {
        guard let group = running.group else {
          logger.notice("Stopped before it had started", metadata: [LogKeys.signal: "\(signal)"])
          log?.finish()
          _exit(0)
        }
        guard let first else {
          first = .now
          logger.notice(
            "Stopping", metadata: [LogKeys.signal: "\(signal)", LogKeys.waitingFor: "\(running.list)"])
          manager?.stopping(waitingFor: running.list)
          await group.triggerGracefulShutdown()
          tasks.addTask { await report(running) }
          continue
        }
        // A second signal within a second is a copy of the first: timeout(1), for example, signals the process and
        // then its group.
        guard ContinuousClock.now - first >= .seconds(1) else { continue }
        logger.warning(
          "Ended by a second signal", metadata: [LogKeys.signal: "\(signal)", LogKeys.waitingFor: "\(running.list)"])
        _exit(128 + signal.rawValue)
      }
      tasks.cancelAll()
    }
  }

  private func report(_ running: Running) async {
    while true {
      // Cancelled when the services have ended.
      do { try await Task.sleep(for: Self.interval) } catch { return }
      manager?.stopping(waitingFor: running.list)
      logger.notice("Still stopping", metadata: [LogKeys.waitingFor: "\(running.list)"])
    }
  }
}

/// A service with a name for log lines.
protocol NamedService: Service {
  var name: String { get }
}
