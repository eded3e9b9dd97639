import FanfareCore
import Ledger

/// A user with very many devices, to whom sends are posted. Everybody else's sends must not wait for them.
struct GiantUser {
  private static let sends = 3
  /// The user's number: none of the load's.
  private static let owner = FaultDeployment.users
  /// The longest p99 of the other sends.
  private static let mostMilliseconds = 5_000.0

  /// The number of devices.
  let devices: Int

  var scenario: FaultScenario {
    FaultScenario("the giant user", inspect: inspect) { deployment, _ in
      let population = Population(
        devices: Population.iPhones(devices).devices.map { device in
          var device = device
          device.owner = Self.owner
          return device
        })
      try await population.register(in: try await deployment.openRegistry())
      await deployment.note()
      let body = #"{"to":{"user":"\#(Population.user(Self.owner))"},"message":{"body":"Goal"}}"#
      for _ in 0..<Self.sends {
        _ = try await deployment.post(broadcast: body)
        try await Task.sleep(for: .seconds(2))
      }
      return []
    }
  }

  private func inspect(_ deployment: FaultDeployment, _ load: FaultLoad) async throws -> FaultFindings {
    var findings = FaultFindings()
    guard let begun = await deployment.moments.first else { throw BenchError("the sends were not posted") }
    var first: [Int: UnixTime] = [:]
    for arrival in try await deployment.arrivals(on: .fcm) {
      first[arrival.number] = min(first[arrival.number] ?? arrival.at, arrival.at)
    }
    let latency = Latency(
      nanoseconds: load.posts.compactMap { number, post in
        guard post.at >= begun else { return nil }
        return first[number].map { Int64(($0 - post.at) / .nanoseconds(1)) }
      })
    // The load's own iPhones are counted with its sends.
    let delivered = try await deployment.history.totals(hub: .default).devices[.apns]?[.delivered] ?? 0
    let giant = delivered - load.posts.count
    findings.errors = abs(giant - Self.sends * devices) + ((latency?.p99 ?? 0) > Self.mostMilliseconds ? 1 : 0)
    findings.observed =
      "\(giant) of \(Self.sends * devices) pushes to the user delivered; p99 of the others \(Int(latency?.p99 ?? 0)) ms"
    return findings
  }
}
