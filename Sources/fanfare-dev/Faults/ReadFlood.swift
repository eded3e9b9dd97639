import Roles
import Synchronization

/// One user's expensive reads on many connections, beside those of other callers of the same hub.
///
/// The user has a hundred devices with sixty tags each, and asks for all of them again and again. The other callers' 99th
/// percentile must stay far below the time that a read may wait.
final class ReadFlood: Sendable {
  private static let devices = 100
  private static let tags = 60
  /// Requests at the same time.
  private static let width = 64
  /// The highest percentile, in milliseconds.
  private static let most = 500.0
  private static let user = "flood"

  private let words = Mutex<String?>(nil)
  /// The flood's answers, by status.
  private let answers = Mutex<[Int: Int]>([:])

  var scenario: FaultScenario {
    FaultScenario(
      "a flood of reads beside normal callers",
      inspect: { _, _ in FaultFindings(observed: self.words.withLock { $0 }) },
      injure: { deployment, _ in
        try await self.flood(deployment)
        return []
      })
  }

  private func flood(_ deployment: FaultDeployment) async throws {
    guard let frontEnd = await deployment.frontEnds.first else { throw BenchError("there is no front end") }
    for device in 0..<Self.devices {
      let tags = (0..<Self.tags).map { #""tag-of-some-length-\#(device)-\#($0)""# }.joined(separator: ",")
      _ = try await frontEnd.request(
        "PUT", "/api/installations/flood-\(device)", user: Self.user,
        body: #"{"platform":"fcm","handle":"flood-\#(device)","tags":[\#(tags)]}"#)
    }
    let idle = try await LoginFlood.p99(at: frontEnd)
    let flooded = try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<Self.width {
        group.addTask { [self] in
          while !Task.isCancelled {
            do {
              _ = try await frontEnd.request("GET", "/api/registrations", user: Self.user)
              answers.withLock { $0[200, default: 0] += 1 }
            } catch let refusal as APIClient.Refusal {
              answers.withLock { $0[refusal.status, default: 0] += 1 }
            } catch {
              // Cancelled at the end of the flood.
            }
          }
        }
      }
      defer { group.cancelAll() }
      return try await LoginFlood.p99(at: frontEnd)
    }
    let given = answers.withLock { $0.sorted { $0.key < $1.key } }.map { "\($0.value) × \($0.key)" }
    words.withLock { $0 = "p99 \(idle.text) → \(flooded.text) ms; flood: \(given.joined(separator: ", "))" }
    guard flooded <= Self.most else {
      throw BenchError("the callers' p99 rose from \(idle.text) to \(flooded.text) ms")
    }
  }
}
