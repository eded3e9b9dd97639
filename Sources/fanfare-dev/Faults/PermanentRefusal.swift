import FanfareCore
import Ledger
import Synchronization

/// A device whose pushes are refused as if the credential were wrong, while sends to it continue.
///
/// Its pushes are repeated until their sends expire. Everybody else's to the same platform must not be delayed.
struct PermanentRefusal {
  /// The longest p99 of the other pushes; an open circuit delays them by fifteen seconds.
  private static let mostMilliseconds = 3_000.0
  private static let user = "refused"
  /// A handle that the simulator answers with a refusal of the credential.
  private static let handle = "0403" + String(repeating: "0", count: 60)

  /// The sends posted to the device.
  private final class Posts: Sendable {
    let count = Atomic(0)
  }

  private let posts = Posts()

  var scenario: FaultScenario {
    FaultScenario("the permanent refusal", isQuick: true, inspect: inspect) { deployment, isQuick in
      let client = try await deployment.frontEnd
      let body = #"{"platform":"ios","instId":"i-refused","deviceToken":"\#(Self.handle)"}"#
      _ = try await client.request("POST", "/api/register", user: Self.user, body: body)
      for _ in 0..<(isQuick ? 40 : 100) {
        let send = #"{"to":{"user":"\#(Self.user)"},"message":{"body":"Are you there?"},"ttl":20}"#
        _ = try await client.request("POST", "/api/sends", user: "sender", body: send)
        posts.count.add(1, ordering: .relaxed)
        try await Task.sleep(for: .milliseconds(200))
      }
      return []
    }
  }

  private func inspect(_ deployment: FaultDeployment, _ load: FaultLoad) async throws -> FaultFindings {
    var findings = FaultFindings()
    var first: [Int: UnixTime] = [:]
    for arrival in try await deployment.arrivals(on: .apns) {
      first[arrival.number] = min(first[arrival.number] ?? arrival.at, arrival.at)
    }
    let latency = Latency(
      nanoseconds: load.posts.compactMap { number, post in
        first[number].map { Int64(($0 - post.at) / .nanoseconds(1)) }
      })
    guard let latency else { throw BenchError("APNs has received nothing") }
    let posted = posts.count.load(ordering: .relaxed)
    findings.expired = try await deployment.history.totals(hub: .default).devices[.apns]?[.expired] ?? 0
    findings.errors = abs(findings.expired - posted) + (latency.p99 > Self.mostMilliseconds ? 1 : 0)
    findings.observed =
      "\(findings.expired) of \(posted) pushes to the device expired; p99 of the others \(Int(latency.p99)) ms"
    return findings
  }
}
