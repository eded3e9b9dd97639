import FanfareCore
import FoundationEssentials
import Ledger

/// Runs a fault scenario: injures a deployment under load, waits until all sends settle, and audits it.
enum FaultRun {
  /// The numbers of the audit that are checked here.
  private struct Audit: Decodable {
    let accepted: Int
    let settled: Int
    let inFlight: Int
    let lost: Int
    let unannounced: Int
    let deadLettered: Int
  }

  /// Runs one scenario. Throws when the deployment cannot start; its later failures are in the row.
  static func run(_ scenario: FaultScenario, isQuick: Bool, on servers: FaultServers) async throws -> FaultRow {
    try await FaultDeployment.with(scenario, on: servers) { deployment in
      let load = FaultLoad(deployment, timeToLive: scenario.timeToLive)
      try await load.register()
      async let running: Void = load.run()
      try await Task.sleep(for: .seconds(1))
      let repeatedEach = try await scenario.injure(deployment, isQuick)
      let healed = await deployment.healedAt ?? .now
      try await Task.sleep(for: .seconds(1))
      load.end()
      try await running
      let accepted = load.accepted
      try await waitForQuiet(of: accepted, deployment)
      let recovered = ContinuousClock.now
      let (report, isSound) = try await audit(deployment)
      let totals = try await deployment.history.totals(hub: .default)
      var errors = report.unannounced + (isSound ? 0 : 1)
      if report.accepted != report.settled + report.inFlight + report.lost { errors += 1 }
      errors += abs(report.deadLettered - scenario.deadLetters)
      // The ledger and the topics must agree.
      errors += abs(report.accepted - totals.accepted) + abs(report.settled - totals.settled)
      var unknown = 0
      for (number, post) in load.posts {
        if let report = try await deployment.history.report(of: post.id, hub: .default) {
          errors += devicesAmiss(in: report, ofSend: number)
        } else {
          unknown += 1
        }
      }
      let findings = try await scenario.inspect?(deployment, load) ?? FaultFindings()
      let arrivals = try await deployment.arrivals()
      var pushes = PushAccount(totals)
      pushes.arrived = arrivals.accepted - arrivals.repeated
      pushes.expectedExpirations = findings.expired
      (pushes.mayExpire, pushes.mayStayUnconfirmed) = (scenario.timeToLive != nil, scenario.mayStayUnconfirmed)
      let notes = await deployment.notes
      let observed = findings.observed ?? (notes.isEmpty ? nil : notes.joined(separator: ", "))
      return FaultRow(
        fault: scenario.name, accepted: accepted.count, settled: report.settled, inFlight: report.inFlight,
        lost: unknown + report.lost + findings.lost,
        repeated: arrivals.repeated, repeatedEach: repeatedEach.sorted(), repeatLimit: scenario.repeats,
        accountingErrors: errors + pushes.errors + findings.errors, observed: observed,
        secondsToRecover: (recovered - healed) / .seconds(1))
    }
  }

  /// Compares the number of devices in a settled send's report with that of the user's devices.
  ///
  /// Returns the difference. Sends that reached no device are counted elsewhere.
  static func devicesAmiss(in report: SendReport, ofSend number: Int) -> Int {
    guard report.state == .settled else { return 0 }
    return abs(report.counts.values.flatMap(\.values).reduce(0, +) - FaultLoad.devices(ofSend: number))
  }

  /// Runs the audit. Throws, with its log, when its report cannot be read.
  private static func audit(_ deployment: FaultDeployment) async throws -> (report: Audit, isSound: Bool) {
    let audit = try await deployment.audit()
    do {
      return (try JSONDecoder().decode(Audit.self, from: Data(audit.report.utf8)), audit.status == 0)
    } catch {
      throw BenchError(
        "fanfare audit ended with status \(audit.status) and without a report: \(audit.report)\n\(audit.words)")
    }
  }

  /// Waits until every send is settled and nothing is in flight.
  ///
  /// The time limit is longer than the longest retry delay and a rebalance. The audit then finds missing sends.
  private static func waitForQuiet(of accepted: Set<SendID>, _ deployment: FaultDeployment) async throws {
    let deadline = ContinuousClock.now + .seconds(400)
    var open = accepted
    while ContinuousClock.now < deadline {
      do {
        for id in open {
          guard let report = try await deployment.history.report(of: id, hub: .default), report.state != .accepted
          else { break }
          open.remove(id)
        }
        if open.isEmpty, try await deployment.history.totals(hub: .default).inFlight == 0 { return }
      } catch {
        // The ledger's file may be missing or locked at the moment.
      }
      try await Task.sleep(for: .milliseconds(200))
    }
  }
}
