import FanfareCore
import Foundation
import NIOSSL
import Roles
import SettingsTable

/// The files that the configuration names: databases with their modes and disks, and the listener's certificate.
///
/// Files of secrets are checked with the configuration: the roles refuse those that others may read.
struct FileCheck {
  let settings: Settings
  let roles: Set<ConfigurationCheck.Role>
  let now: UnixTime

  func findings() -> [CheckResult] {
    var findings: [CheckResult] = []
    if let path = settings.registry.file { findings += database(path, "registry") }
    if let path = settings.ledger.file { findings += database(path, "ledger") }
    if roles.contains(.api), let path = settings.api.certificateFile { findings.append(certificate(path)) }
    return findings
  }

  private func database(_ path: String, _ area: String) -> [CheckResult] {
    let files = FileManager.default
    let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
    guard files.fileExists(atPath: path) else {
      guard files.isWritableFile(atPath: directory) else {
        return [
          .wrong(
            area, "there is no \(path), and its directory is missing or cannot be written",
            remedy: "create \(directory) for the user of the role, or change \(area).path")
        ]
      }
      return [.warning(area, "there is no \(path) yet", remedy: "the role creates it when it starts")]
    }
    guard files.isReadableFile(atPath: path), files.isWritableFile(atPath: path) else {
      return [
        .wrong(area, "\(path) cannot be read and written", remedy: "make it the role's own with chown and chmod 600")
      ]
    }
    let isExposed = PrivateFile.problem(at: path) != nil
    let state: CheckResult =
      isExposed
      ? .warning(area, "other users may read \(path)", remedy: "chmod 600 \(path)")
      : .ok(area, "\(path) is there, and no other user may read it")
    return [state] + [DiskSpace.finding(area, path: path)].compactMap(\.self)
  }

  private func certificate(_ path: String) -> CheckResult {
    let area = "certificate"
    do {
      guard let certificate = try NIOSSLCertificate.fromPEMFile(path).first else {
        return .wrong(area, "\(path) has no certificate", remedy: "name another file in api.tls.certificateFile")
      }
      let end = UnixTime(milliseconds: Int64(certificate.notValidAfter) * 1000)
      let text = "\(path) \(end <= now ? "has expired" : "expires") at \(end)"
      let remedy = "renew it; `fanfare api` takes the new files without a restart"
      if end <= now { return .wrong(area, text, remedy: remedy) }
      return end < now + .seconds(14 * 86_400) ? .warning(area, text, remedy: remedy) : .ok(area, text)
    } catch {
      return .wrong(area, "\(path) cannot be read", remedy: "name a file in PEM in api.tls.certificateFile")
    }
  }
}
