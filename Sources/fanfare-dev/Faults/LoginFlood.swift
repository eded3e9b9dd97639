import FanfareCore
import FoundationEssentials
import Roles
import Synchronization

/// Wrong logins in numbers, against a hub whose passwords are expensive to check, beside callers of another hub.
///
/// The callers' 99th percentile may at most double. Below a few milliseconds the machine's noise decides, so that a
/// lower percentile counts as that much.
final class LoginFlood: Sendable {
  /// Connections that log in with unknown names.
  private static let attackers = 20
  private static let roundTrip: Duration = .milliseconds(20)
  private static let requests = 400
  /// A percentile below this is not compared.
  private static let noise = 5.0
  private static let file = "guarded.htpasswd"
  /// Of a password that nobody sends, with cost 12: 0.2 s of a core for each check.
  private static let user = "warden:$2b$12$bSZ.QhyLfmK5VmUj3Cb./.CkF16ExTEmpspkoiP/4P86fAzuWWUzC\n"

  private let words = Mutex<String?>(nil)
  /// The attackers' answers, by status.
  private let answers = Mutex<[Int: Int]>([:])

  var scenario: FaultScenario {
    FaultScenario(
      "a login flood beside normal callers",
      settings: [
        "FANFARE_HUBS": "default,guarded", "FANFARE_HUB_GUARDED_SIMULATOR": "simulator",
        "FANFARE_HUB_GUARDED_AUTHENTICATION_METHOD": "htpasswd",
        "FANFARE_HUB_GUARDED_AUTHENTICATION_FILE": Self.file,
      ],
      files: [Self.file: Self.user],
      inspect: { _, _ in FaultFindings(observed: self.words.withLock { $0 }) },
      injure: { deployment, _ in
        try await self.flood(deployment)
        return []
      })
  }

  private func flood(_ deployment: FaultDeployment) async throws {
    guard let frontEnd = await deployment.frontEnds.first else { throw BenchError("there is no front end") }
    let idle = try await Self.p99(at: frontEnd)
    let flooded = try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<Self.attackers {
        group.addTask { [self] in
          while !Task.isCancelled {
            do {
              _ = try await frontEnd.request("GET", "/hubs/guarded/api/sends", user: "\(RegistrationID.random())")
            } catch let refusal as APIClient.Refusal {
              answers.withLock { $0[refusal.status, default: 0] += 1 }
            } catch {
              // Cancelled at the end of the flood, or the connection was closed: that is the attacker's loss.
            }
            // A round trip to a distant attacker. Without it this process is busy with reading refusals, which cost the
            // front end little, and the callers' times, which it measures too, would rise for that reason alone.
            do { try await Task.sleep(for: Self.roundTrip) } catch { return }
          }
        }
      }
      defer { group.cancelAll() }
      return try await Self.p99(at: frontEnd)
    }
    let refused = answers.withLock { $0.sorted { $0.key < $1.key } }.map { "\($0.value) × \($0.key)" }
    words.withLock { words in
      words = "p99 \(idle.text) → \(flooded.text) ms; attackers: \(refused.joined(separator: ", "))"
    }
    guard flooded <= 2 * max(idle, Self.noise) else {
      throw BenchError("the callers' p99 rose from \(idle.text) to \(flooded.text) ms")
    }
  }

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
}
