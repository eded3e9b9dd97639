import FanfareCore
import FrontEnd
import Logging
import Roles

/// Checks a deployment from where it stands. Changes nothing.
struct Doctor: Sendable {
  /// The configuration file; nil for none.
  let file: String?
  let environment: [String: String]
  let roles: Set<ConfigurationCheck.Role>
  /// The limit of each request.
  let patience: Duration
  let logger: Logger

  struct Report: Sendable, Encodable {
    let findings: [CheckResult]
    /// Whether the configuration has mistakes, so that little else could be checked.
    let isMisconfigured: Bool

    var worst: CheckResult.Level { findings.map(\.level).max() ?? .ok }
  }

  /// Runs all checks, those that wait for others at the same time.
  func run() async throws -> Report {
    let configuration = try await ConfigurationCheck(
      file: file, environment: environment, roles: roles, logger: logger
    ).run()
    var findings = configuration.mistakes.map {
      CheckResult.wrong("configuration", $0.line, remedy: "correct the value; deploy/fanfare.yaml explains every key")
    }
    findings += configuration.unknownVariables.map {
      .warning("configuration", "\($0) is not a known environment variable", remedy: "correct or remove it")
    }
    if findings.isEmpty { findings = [.ok("configuration", "no mistakes")] }
    let isMisconfigured = !configuration.mistakes.isEmpty
    guard let settings = configuration.settings else {
      return Report(findings: findings + SystemCheck(connections: nil).findings(), isMisconfigured: isMisconfigured)
    }
    findings += await together(checks(of: settings))
    return Report(findings: findings, isMisconfigured: isMisconfigured)
  }

  private func checks(of settings: Settings) -> [@Sendable () async -> [CheckResult]] {
    var checks: [@Sendable () async -> [CheckResult]] = [
      { [roles] in FileCheck(settings: settings, roles: roles, now: SystemWallClock().now()).findings() },
      { [roles, patience, logger] in
        await KafkaCheck(settings: settings, roles: roles, patience: patience, logger: logger).findings()
      },
      { [patience, logger] in
        await DatabaseCheck(settings: settings, patience: patience, logger: logger).findings()
      },
    ]
    checks.append { [logger] in await ClockCheck(settings: settings, logger: logger).findings() }
    if roles.contains(.worker) {
      for hub in settings.hubs {
        checks.append { [patience, logger] in
          await PushCheck(settings: settings, hub: hub, patience: patience, logger: logger).findings()
        }
      }
    }
    let connections = roles.contains(.api) ? settings.api.frontEnd.maximumConnections : nil
    checks.append { SystemCheck(connections: connections).findings() }
    return checks
  }

  /// The findings of all checks, in the order of the checks.
  private func together(_ checks: [@Sendable () async -> [CheckResult]]) async -> [CheckResult] {
    await withTaskGroup(of: (Int, [CheckResult]).self) { group in
      for (number, check) in checks.enumerated() { group.addTask { (number, await check()) } }
      var found = [[CheckResult]](repeating: [], count: checks.count)
      for await (number, findings) in group { found[number] = findings }
      return found.flatMap(\.self)
    }
  }
}
