import FanfareCore
import Roles

/// The latency of single sends during broadcasts to everyone, compared with that without.
struct LaneScenario: BenchScenario {
  let name = "lanes"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let users = rig.options.scaled(1_000_000, floor: 20_000)
    let registry = rig.path("lanes.sqlite")
    try await Population.iPhones(users).register(in: registry)
    // In a quick run the small broadcast is slowed down to last as long as the sends.
    let rate = rig.options.isQuick ? #","maxPerSecond":2000"# : ""
    let broadcast = #"{"to":{"everyone":true},"message":{"body":"Goal"}\#(rate)}"#
    let (perSecond, seconds) = (200, rig.options.isQuick ? 1 : 10)
    let (idlePost, idle, _) = try await LatencyScenario.run(
      rig, registry: registry, users: users, rate: perSecond, seconds: seconds)
    let (busyPost, busy, others) = try await LatencyScenario.run(
      rig, registry: registry, users: users, rate: perSecond, seconds: seconds, broadcast: broadcast)
    var report = ScenarioReport(scenario: "\(name), \(perSecond)/s", unit: "sends", sink: "in this process")
    report.latencies = [
      ("POST answered, idle", idlePost), ("POST answered, broadcast", busyPost), ("push at the sink, idle", idle),
      ("push at the sink, broadcast", busy),
    ]
    report.notes.append("\(others.text) pushes/s of broadcasts meanwhile")
    report.goals = [.p99("push at the sink, broadcast", idle.p99 * 1.5)]
    return [report]
  }
}
