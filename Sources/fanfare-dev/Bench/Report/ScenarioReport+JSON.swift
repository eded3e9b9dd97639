/// The rows as a program reads them.
extension ScenarioReport: Encodable {
  private enum Key: String, CodingKey {
    case scenario, unit, connections, sink, perSecond, ceilingPerSecond, shareOfCeiling, cpuMicroseconds,
      multipleOfCeiling
    case peakMegabytes, pairs, latencies, goals, notes
  }

  private struct Pair: Encodable {
    let perSecond: Double
    let cpuMicroseconds: Double?
    let ceilingPerSecond: Double?
    let ceilingCPUMicroseconds: Double?
  }

  private struct Times: Encodable {
    let name: String
    let count: Int
    let p50, p99, p999, maximum: Double
  }

  private struct Verdict: Encodable {
    let goal: String
    let isReached: Bool?
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(scenario, forKey: .scenario)
    try values.encode(unit, forKey: .unit)
    try values.encodeIfPresent(connections, forKey: .connections)
    try values.encode(sink, forKey: .sink)
    try values.encodeIfPresent(rate, forKey: .perSecond)
    try values.encodeIfPresent(ceilingRate, forKey: .ceilingPerSecond)
    try values.encodeIfPresent(share, forKey: .shareOfCeiling)
    try values.encodeIfPresent(cpuMicroseconds, forKey: .cpuMicroseconds)
    try values.encodeIfPresent(multiple, forKey: .multipleOfCeiling)
    try values.encodeIfPresent(peakMegabytes, forKey: .peakMegabytes)
    try values.encode(
      pairs.map {
        Pair(
          perSecond: $0.product.rate, cpuMicroseconds: $0.product.cpuMicroseconds, ceilingPerSecond: $0.ceiling?.rate,
          ceilingCPUMicroseconds: $0.ceiling?.cpuMicroseconds)
      }, forKey: .pairs)
    try values.encode(
      latencies.map {
        Times(
          name: $0.name, count: $0.latency.count, p50: $0.latency.p50, p99: $0.latency.p99, p999: $0.latency.p999,
          maximum: $0.latency.maximum)
      }, forKey: .latencies)
    try values.encode(verdicts.map { Verdict(goal: $0.goal, isReached: $0.isReached) }, forKey: .goals)
    try values.encode(notes, forKey: .notes)
  }
}
