import Operations
import Roles

/// Waits for the demo's roles.
struct Readiness {
  let checks: [any ReadinessCheck]

  /// Suspends until every role can do its job. Says what it waits for, after a while.
  func wait() async throws {
    let start = ContinuousClock.now
    var hasComplained = false
    while true {
      var waiting: [String] = []
      for check in checks {
        if let problem = await check.problem() { waiting.append("\(check.name): \(problem)") }
      }
      if waiting.isEmpty { return }
      if !hasComplained, ContinuousClock.now - start > .seconds(10) {
        Console.print("Waiting: \(waiting.joined(separator: "; "))")
        hasComplained = true
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}
