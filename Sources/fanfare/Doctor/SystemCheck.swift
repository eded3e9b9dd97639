import Foundation

/// The limits of the system.
struct SystemCheck {
  /// The connections that a front end accepts; nil without one.
  let connections: Int?

  /// Files that a role has open besides connections: databases, logs, Kafka's sockets.
  private static let others = 512

  func findings() -> [CheckResult] {
    guard let limit = OpenFiles.limit else { return [] }
    let needed = (connections ?? 0) + Self.others
    guard limit < needed else { return [.ok("system", "\(limit) open files are allowed, \(needed) may be needed")] }
    return [
      .warning(
        "system", "only \(limit) open files are allowed, and \(needed) may be needed",
        remedy: "raise the limit (LimitNOFILE= of the systemd unit, ulimit -n), or lower api.maximumConnections")
    ]
  }
}

/// The space that is left on a disk.
enum DiskSpace {
  private static let scarce: Int64 = 1 << 30
  private static let least: Int64 = 64 << 20

  /// The finding about the disk of a file or directory; nil if the system does not tell.
  static func finding(_ area: String, path: String) -> CheckResult? {
    // Throws for a file system without the information, which is no problem.
    guard let attributes = try? FileManager.default.attributesOfFileSystem(forPath: path),
      let free = (attributes[.systemFreeSize] as? NSNumber)?.int64Value
    else { return nil }
    let text = "\(free >> 20) MiB are free on the disk of \(path)"
    let remedy = "make room, or move the file to a larger disk"
    if free < least { return .wrong(area, text, remedy: remedy) }
    return free < scarce ? .warning(area, text, remedy: remedy) : .ok(area, text)
  }
}
