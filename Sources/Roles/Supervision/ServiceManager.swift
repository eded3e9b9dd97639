import Glibc
import Logging
import Operations
import Synchronization

/// The service manager that started this process, usually systemd.
///
/// It learns when the role is ready and when it stops, why the role is not ready, and, as long as the event loops
/// respond, that the role needs no restart.
final class ServiceManager: Sendable {
  /// The time between two reports of a role that is not ready yet.
  private static let startInterval = Duration.seconds(1)
  /// The longest time between two reports.
  private static let longestInterval = Duration.seconds(5)

  private struct Progress {
    var state: ServiceState
    var hasFailed = false
  }

  private let socket: NotifySocket
  private let interval: Duration
  private let logger: Logger
  private let progress: Mutex<Progress>

  /// Nil if the environment names no service manager (`NOTIFY_SOCKET`), or none that can be reached.
  ///
  /// `WATCHDOG_USEC` is the time after which it restarts a role that does not report. Four reports fit into it.
  init?(environment: [String: String], logger: Logger) {
    guard let name = environment["NOTIFY_SOCKET"] else { return nil }
    do { socket = try NotifySocket(name) } catch {
      logger.warning("Service manager cannot be reached", metadata: [LogKeys.error: "\(error)"])
      return nil
    }
    // The variables are inherited by children of the process that they are for.
    let isMeant = environment["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
    let watchdog = isMeant ? environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil } : nil
    interval = watchdog.map { min(Self.longestInterval, .microseconds($0 / 4)) } ?? Self.longestInterval
    self.logger = logger
    progress = Mutex(Progress(state: ServiceState(isWatched: watchdog != nil)))
  }

  /// Reports the role's health until the task is cancelled.
  func report(_ health: HealthRegistry) async {
    while true {
      let phase = progress.withLock { $0.state.phase }
      let liveness = await health.liveness()
      // A service that has ended may be asked nothing.
      let readiness = phase == .stopping ? nil : await health.readiness()
      // A cancelled check does not answer.
      if Task.isCancelled { return }
      tell { $0.observe(liveness: liveness, readiness: readiness) }
      let pause = phase == .starting ? min(Self.startInterval, interval) : interval
      do { try await Task.sleep(for: pause) } catch { return }
    }
  }

  /// Reports that the role stops, and what it waits for. Call it again when that changes.
  func stopping(waitingFor services: String) {
    tell { $0.stop(waitingFor: services) }
  }

  private func tell(_ event: (inout ServiceState) -> [String]) {
    progress.withLock { progress in
      var state = progress.state
      let assignments = event(&state)
      do {
        if !assignments.isEmpty { try socket.send(assignments.joined(separator: "\n")) }
        progress = Progress(state: state)
      } catch {
        // The state stays as it was, so the next event sends again what the service manager does not know.
        if !progress.hasFailed {
          logger.warning("Service manager cannot be reached", metadata: [LogKeys.error: "\(error)"])
        }
        progress.hasFailed = true
      }
    }
  }
}
