import Roles

/// One user's expensive reads on many connections, beside those of other callers of the same hub.
///
/// The user asks for all its devices again and again. The other callers' 99th percentile must stay far below the time
/// that a read may wait.
enum ReadFlood {
  /// Requests at the same time.
  private static let width = 64
  /// The highest percentile, in milliseconds.
  private static let most = 500.0
  private static let user = "flood"

  static let scenario = FaultScenario("a flood of reads beside normal callers") { deployment, _ in
    let frontEnd = try await deployment.frontEnd
    try await NormalCallers.registerDevices(of: user, tagLength: 20, at: frontEnd)
    let idle = try await NormalCallers.p99(at: frontEnd)
    let flooded = try await NormalCallers.p99(at: frontEnd, beside: width) {
      _ = try await frontEnd.request("GET", "/api/registrations", user: user)
    }
    await deployment.note("p99 \(idle.text) → \(flooded.milliseconds.text) ms; flood: \(flooded.answers)")
    guard flooded.milliseconds <= most else {
      throw BenchError("the callers' p99 rose from \(idle.text) to \(flooded.milliseconds.text) ms")
    }
    return []
  }
}
