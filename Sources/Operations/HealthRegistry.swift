/// What is asked when somebody wants to know how a process is. Every check is bounded in time and asked once at a time,
/// however many people ask.
package final class HealthRegistry: Sendable {
  private let livenessChecks: [BoundedCheck]
  private let readinessChecks: [BoundedCheck]

  /// - Parameters:
  ///   - liveness: Checks whose failure means that only a restart helps; nothing that lies outside the process, or an
  ///     outage elsewhere would kill it.
  ///   - readiness: Checks of everything that the process needs for its job.
  ///   - limit: How long one check may take before it counts as failed.
  package init(liveness: [any ReadinessCheck] = [], readiness: [any ReadinessCheck], limit: Duration = .seconds(3)) {
    livenessChecks = liveness.map { BoundedCheck($0, limit: limit) }
    readinessChecks = readiness.map { BoundedCheck($0, limit: limit) }
  }

  /// Whether the process lives.
  package func liveness() async -> HealthReport { await Self.report(livenessChecks) }

  /// Whether the process can do its job now.
  package func readiness() async -> HealthReport { await Self.report(readinessChecks) }

  private static func report(_ checks: [BoundedCheck]) async -> HealthReport {
    let complaints = await withTaskGroup(of: (Int, String?).self) { group in
      for (index, check) in checks.enumerated() { group.addTask { (index, await check.complaint()) } }
      var complaints = [String?](repeating: nil, count: checks.count)
      for await (index, complaint) in group { complaints[index] = complaint }
      return complaints
    }
    return HealthReport(checks: zip(checks, complaints).map { HealthReport.Check(name: $0.name, complaint: $1) })
  }
}
