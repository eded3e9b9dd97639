import FanfareCore
import FoundationEssentials
import Ledger

/// Injures a deployment of its own while a load runs, waits for quiet, and audits.
enum FaultRun {
  /// What the audit says, as far as it is looked at here.
  private struct Audit: Decodable {
    let accepted: Int
    let settled: Int
    let inFlight: Int
    let lost: Int
    let unannounced: Int
    let deadLettered: Int
  }

  /// Runs one scenario. Throws when the deployment cannot be started, not for what it does wrong.
  static func run(_ scenario: FaultScenario, isQuick: Bool) async throws -> FaultRow {
    try await FaultDeployment.with(topics: scenario.topics, hasSmallDisk: scenario.needsSmallDisk) { deployment in
      let load = FaultLoad(deployment, timeToLive: scenario.timeToLive)
      try await load.register()
      async let running: Void = load.run()
      try await Task.sleep(for: .seconds(1))
      let repeatedEach = try await scenario.injure(deployment, isQuick)
      let healed = ContinuousClock.now
      try await Task.sleep(for: .seconds(1))
      load.end()
      try await running
      let accepted = load.accepted
      try await waitForQuiet(of: accepted, deployment)
      let recovered = ContinuousClock.now
      let audit = try await deployment.audit()
      let report = try JSONDecoder().decode(Audit.self, from: Data(audit.report.utf8))
      let totals = try await deployment.history.totals(hub: .default)
      var errors = report.unannounced + (audit.status == 0 ? 0 : 1)
      if report.accepted != report.settled + report.inFlight + report.lost { errors += 1 }
      errors += abs(report.deadLettered - scenario.deadLetters)
      // The ledger and the topics are two witnesses of one thing.
      errors += abs(report.accepted - totals.accepted) + abs(report.settled - totals.settled)
      var unknown = 0
      for id in accepted where try await deployment.history.report(of: id, hub: .default) == nil { unknown += 1 }
      // Every message is good, and every device stays its user's: nothing may be refused.
      errors += totals.devices.values.reduce(0) { $0 + ($1[.rejected] ?? 0) + ($1[.deviceGone] ?? 0) }
      // And a day is long enough for all of them.
      if scenario.timeToLive == nil { errors += totals.devices.values.reduce(totals.expired) { $0 + ($1[.expired] ?? 0) } }
      let findings = try await scenario.inspect?(deployment, load) ?? FaultFindings()
      let arrivals = try await deployment.arrivals()
      return FaultRow(
        fault: scenario.name, accepted: accepted.count, settled: report.settled, inFlight: report.inFlight,
        lost: unknown + report.lost + findings.lost,
        repeated: arrivals.repeated, repeatedEach: repeatedEach.sorted(), accountingErrors: errors + findings.errors,
        observed: findings.observed,
        secondsToRecover: Double((recovered - healed).components.seconds) + Double((recovered - healed).components.attoseconds)
          / 1e18)
    }
  }

  /// Waits until every send has its end and nothing is in flight, for as long as the longest wait in a retry topic and a rebalance take, and longer.
  private static func waitForQuiet(of accepted: Set<SendID>, _ deployment: FaultDeployment) async throws {
    let deadline = ContinuousClock.now + .seconds(400)
    var open = accepted
    while ContinuousClock.now < deadline {
      do {
        for id in open {
          guard let report = try await deployment.history.report(of: id, hub: .default), report.state != .accepted else { break }
          open.remove(id)
        }
        if open.isEmpty, try await deployment.history.totals(hub: .default).inFlight == 0 { return }
      } catch {
        // The ledger's file is not there yet, or locked for the moment.
      }
      try await Task.sleep(for: .milliseconds(200))
    }
  }
}
