package import FanfareCore
import FoundationEssentials
package import NIOCore
import Synchronization

/// The health checks of a process.
/// Each runs with a time limit, and at most once a second however many callers ask.
package final class HealthRegistry: Sendable {
  /// The time for which a report is given again instead of a new one.
  private static let lifetime = Duration.seconds(1)

  private enum Kind { case liveness, readiness }

  private let livenessChecks: [BoundedCheck]
  private let readinessChecks: [BoundedCheck]
  private let now: @Sendable () -> ContinuousClock.Instant
  /// The latest report of each kind, and when its checks began.
  private let latest = Mutex<[Kind: (report: HealthReport, at: ContinuousClock.Instant)]>([:])

  /// - Parameters:
  ///   - liveness: Checks whose failure only a restart can repair. Nothing outside the process belongs here: an outage
  ///     elsewhere would restart it.
  ///   - readiness: Checks of everything that the process needs for its job.
  ///   - limit: After this time a check counts as failed.
  ///   - now: The clock of the reports' age.
  package init(
    liveness: [any ReadinessCheck] = [], readiness: [any ReadinessCheck], limit: Duration = .seconds(3),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.now = now
    livenessChecks = liveness.map { BoundedCheck($0, limit: limit) }
    readinessChecks = readiness.map { BoundedCheck($0, limit: limit) }
  }

  /// Reports whether the process works, or needs a restart. The report is at most a second old.
  package func liveness() async -> HealthReport { await report(.liveness, livenessChecks) }

  /// Reports whether the process can do its job now. The report is at most a second old.
  package func readiness() async -> HealthReport { await report(.readiness, readinessChecks) }

  private func report(_ kind: Kind, _ checks: [BoundedCheck]) async -> HealthReport {
    let start = now()
    if let known = latest.withLock({ $0[kind] }), start - known.at < Self.lifetime { return known.report }
    let report = await Self.report(checks)
    latest.withLock { $0[kind] = (report, start) }
    return report
  }

  private static func report(_ checks: [BoundedCheck]) async -> HealthReport {
    let problems = await withTaskGroup(of: (Int, [ReadinessProblem]).self) { group in
      for (index, check) in checks.enumerated() { group.addTask { (index, await check.problems()) } }
      return await group.reduce(into: [[ReadinessProblem]](repeating: [], count: checks.count)) { $0[$1.0] = $1.1 }
    }
    return HealthReport(checks: zip(checks, problems).map { HealthReport.Check(name: $0.name, problems: $1) })
  }
}

/// The results of a process's health checks, in the order in which the checks were registered.
package struct HealthReport: Hashable, Sendable {
  /// The result of one check.
  package struct Check: Hashable, Sendable, Encodable {
    package let name: String
    /// Empty if the check passed.
    package let problems: [ReadinessProblem]

    /// All problems in one text; nil if the check passed.
    package var problem: String? { problems.isEmpty ? nil : problems.map(\.text).joined(separator: "; ") }

    private enum CodingKeys: String, CodingKey {
      case name
      // Part of the HTTP answer since the first version.
      case problem = "complaint"
    }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(name, forKey: .name)
      try container.encodeIfPresent(problem, forKey: .problem)
    }
  }

  package let checks: [Check]

  /// Whether every check passed.
  package var isGood: Bool { checks.allSatisfy { $0.problem == nil } }

  /// Returns a JSON object with `status`, which is one of the two words, and `checks` unless strangers read it.
  func json(good: String, bad: String, forStrangers: Bool = false) throws -> String {
    struct Document: Encodable {
      let status: String
      let checks: [Check]?
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let document = Document(status: isGood ? good : bad, checks: forStrangers ? nil : checks)
    return String(decoding: try encoder.encode(document), as: UTF8.self)
  }
}

/// A check with a time limit. Callers that ask while the check is running share its answer.
final class BoundedCheck: Sendable {
  private struct State {
    var isRunning = false
    var lastWaiter = 0
    var waiters: [Int: AsyncStream<[ReadinessProblem]>.Continuation] = [:]
  }

  private let check: any ReadinessCheck
  private let limit: Duration
  private let state = Mutex(State())

  init(_ check: any ReadinessCheck, limit: Duration) {
    self.check = check
    self.limit = limit
  }

  var name: String { check.name }

  /// Returns the check's problems, or that it did not answer within the limit.
  func problems() async -> [ReadinessProblem] {
    // The first of two answers counts: the check's or the timer's.
    let (answers, waiter) = AsyncStream.makeStream(of: [ReadinessProblem].self, bufferingPolicy: .bufferingOldest(1))
    let (id, isFirst) = state.withLock { state in
      state.lastWaiter += 1
      state.waiters[state.lastWaiter] = waiter
      defer { state.isRunning = true }
      return (state.lastWaiter, !state.isRunning)
    }
    if isFirst {
      // Not a child task: a check that hangs must not delay its callers, and later callers must not start it again.
      Task { finish(await check.problems()) }
    }
    let limit = limit
    let timer = Task {
      try await Task.sleep(for: limit)
      waiter.yield([ReadinessProblem("did not answer within \(limit)")])
    }
    defer {
      timer.cancel()
      state.withLock { $0.waiters[id] = nil }
    }
    for await answer in answers { return answer }
    return [ReadinessProblem("was cancelled before it answered")]
  }

  private func finish(_ answer: [ReadinessProblem]) {
    let waiters = state.withLock { state in
      defer {
        state.isRunning = false
        state.waiters = [:]
      }
      return state.waiters.values
    }
    for waiter in waiters { waiter.yield(answer) }
  }
}

/// One condition of a process's health: something that it needs for its job.
package protocol ReadinessCheck: Sendable {
  /// The check's name in health reports, such as `kafka` or `registry`. Constant.
  var name: String { get }

  /// Returns the readiness problems; empty if there are none. The texts must not contain secrets.
  ///
  /// Never called while an earlier call is running. The caller stops waiting after the time limit of `HealthRegistry`.
  func problems() async -> [ReadinessProblem]
}

/// A check that calls a closure.
package struct NamedCheck: ReadinessCheck {
  package let name: String
  private let check: @Sendable () async -> [ReadinessProblem]

  /// The closure has the contract of `ReadinessCheck.problems()`.
  package init(_ name: String, problems: @escaping @Sendable () async -> [ReadinessProblem]) {
    self.name = name
    check = problems
  }

  /// The closure returns the only problem, which concerns the hubs; nil if there is none.
  package init(_ name: String, hubs: Set<HubName>? = nil, problem: @escaping @Sendable () async -> String?) {
    self.init(name) { await problem().map { [ReadinessProblem($0, hubs: hubs)] } ?? [] }
  }

  package func problems() async -> [ReadinessProblem] { await check() }
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
  package func problems() async -> [ReadinessProblem] {
    // Submitted to all loops first, so that the check takes as long as the slowest loop.
    let tasks = group.makeIterator().map { $0.submit {} }
    do {
      for task in tasks { try await task.get() }
      return []
    } catch {
      return [ReadinessProblem("an event loop does not accept tasks")]
    }
  }
}
