import Roles

/// The times of normal callers beside a flood of requests.
enum NormalCallers {
  private static let requests = 400

  /// The 99th percentile of an authenticated request's time, in milliseconds.
  static func p99(at frontEnd: APIClient) async throws -> Double {
    var times: [Double] = []
    for _ in 0..<requests {
      let start = ContinuousClock.now
      _ = try await frontEnd.request("GET", "/api/registrations?user=faults", user: "faults")
      times.append((ContinuousClock.now - start) / .milliseconds(1))
      // Like callers, not like a load generator.
      try await Task.sleep(for: .milliseconds(10))
    }
    return times.sorted()[requests * 99 / 100]
  }

  /// The same while `width` tasks repeat a request, each after `pause`. Returns the numbers of the flood's answers by
  /// status, too.
  static func p99(
    at frontEnd: APIClient, beside width: Int, pause: Duration = .zero,
    request: @escaping @Sendable () async throws -> Void
  ) async throws -> (milliseconds: Double, answers: String) {
    try await withThrowingTaskGroup(of: [Int: Int].self) { group in
      for _ in 0..<width { group.addTask { await flood(pause: pause, with: request) } }
      let milliseconds = try await p99(at: frontEnd)
      group.cancelAll()
      let answers = try await group.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
      let words = answers.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
      return (milliseconds, words.joined(separator: ", "))
    }
  }

  /// Repeats a request until the task is cancelled. Returns the number of answers by status.
  private static func flood(pause: Duration, with request: () async throws -> Void) async -> [Int: Int] {
    var answers: [Int: Int] = [:]
    while !Task.isCancelled {
      do {
        try await request()
        answers[200, default: 0] += 1
      } catch let refusal as APIClient.Refusal {
        answers[refusal.status, default: 0] += 1
      } catch {
        // Cancelled at the end of the flood, or the connection was closed: that is the attacker's loss.
      }
      do { try await Task.sleep(for: pause) } catch { break }
    }
    return answers
  }

  /// Registers a hundred devices of the user with sixty tags each, so that the list of them is long.
  static func registerDevices(of user: String, tagLength: Int, at frontEnd: APIClient) async throws {
    let rest = String(repeating: "x", count: tagLength)
    for device in 0..<100 {
      let tags = (0..<60).map { #""t\#(device)-\#($0)-\#(rest)""# }.joined(separator: ",")
      _ = try await frontEnd.request(
        "PUT", "/api/installations/\(user)-\(device)", user: user,
        body: #"{"platform":"fcm","handle":"\#(user)-\#(device)","tags":[\#(tags)]}"#)
    }
  }
}
