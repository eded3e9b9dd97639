package import NIOCore

/// One condition of a process's health: something that it needs for its job.
package protocol ReadinessCheck: Sendable {
  /// The check's name in health reports, such as `kafka` or `registry`. Constant.
  var name: String { get }

  /// Returns the readiness problem, or nil if there is none. The text must not contain secrets.
  ///
  /// Never called while an earlier call is running. The caller stops waiting after the time limit of `HealthRegistry`.
  func problem() async -> String?
}

/// A check that calls a closure.
package struct NamedCheck: ReadinessCheck {
  package let name: String
  private let check: @Sendable () async -> String?

  /// The closure has the contract of `ReadinessCheck.problem()`.
  package init(_ name: String, problem: @escaping @Sendable () async -> String?) {
    self.name = name
    check = problem
  }

  package func problem() async -> String? { await check() }
}

/// Checks that every event loop of a group still executes tasks.
///
/// Use it for liveness: a blocked loop serves none of its connections, and only a restart helps.
package struct EventLoopsCheck: ReadinessCheck {
  package let name: String
  private let group: any EventLoopGroup

  package init(group: any EventLoopGroup, name: String = "event loops") {
    self.group = group
    self.name = name
  }

  /// Returns when every loop has executed one task.
  /// A blocked loop is detected by the caller's time limit.
  package func problem() async -> String? {
    // Submitted to all loops first, so that the check takes as long as the slowest loop.
    let tasks = group.makeIterator().map { $0.submit {} }
    do {
      for task in tasks { try await task.get() }
      return nil
    } catch {
      return "an event loop does not accept tasks"
    }
  }
}
