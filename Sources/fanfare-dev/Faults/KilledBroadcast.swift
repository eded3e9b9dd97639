import FanfareCore
import Ledger
import Registry

/// A broadcast, all of whose workers are killed three times while it runs.
struct KilledBroadcast {
  private static let kills = 3

  /// How many devices it reaches.
  let devices: Int

  var scenario: FaultScenario {
    // How many of them may be the broadcast's is looked at in the end.
    FaultScenario(
      "kill -9 of every worker, three times during a broadcast", repeats: .some, inspect: inspect
    ) { deployment, _ in
      try await population.register(in: try await deployment.openRegistry())
      // Slow enough that it is under way each time: for 25 seconds without the kills.
      let body = #"{"to":{"tag":"crowd"},"message":{"body":"Goal"},"maxPerSecond":\#(devices / 25)}"#
      _ = try await deployment.post(broadcast: body)
      try await Task.sleep(for: .seconds(3))
      for number in 0..<Self.kills {
        for worker in 0..<FaultDeployment.workers { try await deployment.kill("worker", worker) }
        for worker in 0..<FaultDeployment.workers { try await deployment.start("worker", worker) }
        await deployment.noteHealed()
        // The group has to miss the dead ones first.
        try await Task.sleep(for: number == Self.kills - 1 ? .seconds(1) : deployment.sessionPatience)
      }
      return []
    }
  }

  /// Nobody of them is a user of the load's, whose devices are counted.
  private var population: Population {
    let iPhones = Population.iPhones(devices, tags: [("crowd", 0..<devices)]).devices
    return Population(
      devices: iPhones.map { device in
        var device = device
        device.owner += FaultDeployment.users
        return device
      })
  }

  /// The counts must be exact, and only what was under way may have come twice.
  private func inspect(_ deployment: FaultDeployment, _ load: FaultLoad) async throws -> FaultFindings {
    var findings = FaultFindings()
    guard let send = await deployment.broadcast,
      let report = try await deployment.history.report(of: send, hub: .default)
    else {
      findings.lost = devices
      return findings
    }
    let delivered = report.counts[.apns]?[.delivered] ?? 0
    findings.errors = abs(delivered - devices) + (report.state == .settled ? 0 : 1)
    let bound = Self.kills * FaultDeployment.workers * FaultDeployment.pageDevices
    let repeated = try await deployment.arrivals().repeated - repeatsOfLoad(deployment)
    if repeated > bound { findings.errors += 1 }
    findings.observed =
      "broadcast: \(delivered) of \(devices) delivered, \(repeated) repeated; \(FaultDeployment.pageDevices) a worker and kill, so at most \(bound)"
    return findings
  }

  /// How often a device has got a send of the load again.
  private func repeatsOfLoad(_ deployment: FaultDeployment) async throws -> Int {
    let iPhones = (0..<FaultDeployment.users).map(FaultLoad.iPhone(of:))
    let arrivals = try await deployment.arrivals(on: .apns, at: iPhones) + deployment.arrivals(on: .fcm)
    let all = arrivals + (try await deployment.arrivals(on: .wns))
    return all.count - Set(all.map { "\($0.device) \($0.number)" }).count
  }
}
