import FanfareCore
import FoundationEssentials
import Roles

/// Wrong logins in numbers, against a hub whose passwords are expensive to check, beside callers of another hub.
///
/// The callers' 99th percentile may at most double. Below a few milliseconds the machine's noise decides, so that a
/// lower percentile counts as that much.
enum LoginFlood {
  /// Connections that log in with unknown names.
  private static let attackers = 20
  /// A round trip to a distant attacker. Without it this process is busy with reading refusals, which cost the front
  /// end little, and the callers' times, which it measures too, would rise for that reason alone.
  private static let roundTrip: Duration = .milliseconds(20)
  /// A percentile below this is not compared.
  private static let noise = 5.0
  private static let file = "guarded.htpasswd"
  /// A user with cost 12, whose password no attacker knows: each check takes 0.2 s of a core.
  private static let user = "warden:$2b$12$bSZ.QhyLfmK5VmUj3Cb./.CkF16ExTEmpspkoiP/4P86fAzuWWUzC\n"

  static let scenario = FaultScenario(
    "a login flood beside normal callers",
    settings: [
      "FANFARE_HUBS": "default,guarded", "FANFARE_HUB_GUARDED_SIMULATOR": "simulator",
      "FANFARE_HUB_GUARDED_AUTHENTICATION_METHOD": "htpasswd",
      "FANFARE_HUB_GUARDED_AUTHENTICATION_FILE": file,
    ],
    files: [file: user]
  ) { deployment, _ in
    let frontEnd = try await deployment.frontEnd
    let idle = try await NormalCallers.p99(at: frontEnd)
    let flooded = try await NormalCallers.p99(at: frontEnd, beside: attackers, pause: roundTrip) {
      _ = try await frontEnd.request("GET", "/hubs/guarded/api/sends", user: "\(RegistrationID.random())")
    }
    await deployment.note("p99 \(idle.text) → \(flooded.milliseconds.text) ms; attackers: \(flooded.answers)")
    guard flooded.milliseconds <= 2 * max(idle, noise) else {
      throw BenchError("the callers' p99 rose from \(idle.text) to \(flooded.milliseconds.text) ms")
    }
    return []
  }
}
