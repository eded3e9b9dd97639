import Foundation

/// The space that is left on the disk of a database file.
enum FreeSpace {
  /// Fewer free bytes count as a full disk: SQLite then fails in the middle of its log or of a checkpoint.
  static let minimum: Int64 = 1024 * 1024

  /// The bytes that are free for this process on the disk of the file; nil if the system does not say.
  static func bytes(at path: String) -> Int64? {
    // Throws for a file system without the information, which is no problem of the registry.
    let attributes = try? FileManager.default.attributesOfFileSystem(forPath: path)
    return (attributes?[.systemFreeSize] as? NSNumber)?.int64Value
  }
}
