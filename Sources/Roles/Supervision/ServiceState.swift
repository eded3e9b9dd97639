import Operations

/// The state of a role as its service manager knows it; see sd_notify(3).
///
/// `starting` → `running` when all readiness checks pass → `stopping` at the first signal. A role that is running stays
/// so: systemd knows no way back from READY, so a later readiness problem changes the status text alone.
///
/// Each method returns the assignments of the message that the event needs; none if the service manager knows all.
struct ServiceState: Equatable {
  enum Phase { case starting, running, stopping }

  /// How long a role that is alive may take until its next message while it starts. A role that waits for Kafka or a
  /// database is not restarted: that would not bring them back.
  private static let startExtension = Duration.seconds(60)
  /// Above the service manager's limit of 4096 bytes it would ignore the message.
  private static let maximumStatusBytes = 2048

  private(set) var phase = Phase.starting
  private var status = ""
  /// Whether the service manager restarts a role that does not report that it is alive.
  let isWatched: Bool

  init(isWatched: Bool) { self.isWatched = isWatched }

  /// The health checks have answered. The readiness is not known (nil) while the role stops.
  mutating func observe(liveness: HealthReport, readiness: HealthReport?) -> [String] {
    var assignments: [String] = []
    let isReady = liveness.isGood && readiness?.isGood == true
    if liveness.isGood {
      if isWatched { assignments.append("WATCHDOG=1") }
      if phase == .starting, !isReady {
        assignments.append("EXTEND_TIMEOUT_USEC=\(Self.startExtension.components.seconds * 1_000_000)")
      }
    }
    if phase == .starting, isReady {
      phase = .running
      assignments.append("READY=1")
    }
    guard phase != .stopping else { return assignments }
    let problems = (liveness.checks + (readiness?.checks ?? [])).compactMap { check in
      check.problem.map { "\(check.name): \($0)" }
    }
    return assignments + change(problems.isEmpty ? "Ready" : "Not ready: " + problems.joined(separator: "; "))
  }

  /// The role was told to stop, or still waits for its services to end.
  mutating func stop(waitingFor services: String) -> [String] {
    let assignments = phase == .stopping ? [] : ["STOPPING=1"]
    phase = .stopping
    return assignments + change("Stopping, waits for: \(services)")
  }

  private mutating func change(_ text: String) -> [String] {
    // A line end would begin another assignment.
    let text = String(decoding: Printable.line(text).utf8.prefix(Self.maximumStatusBytes), as: UTF8.self)
    guard text != status else { return [] }
    status = text
    return ["STATUS=\(text)"]
  }
}
