import Foundation
import Roles

/// The directory for the files of one run.
enum RunDirectory {
  /// Creates a directory that belongs to this process only, and which others may not read.
  static func create(_ prefix: String) throws -> URL {
    let directory = FileManager.default.temporaryDirectory.appending(path: "\(prefix)-\(UUID())")
    // This throws if the directory exists.
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    return directory
  }

  /// Removes the directory of a run that is over. Reports on standard error if it cannot be removed.
  static func remove(_ directory: URL) {
    // A database that is being closed may delete its files at the same moment, which ends the removal.
    for isLast in [false, false, true] {
      do {
        return try FileManager.default.removeItem(at: directory)
      } catch CocoaError.fileNoSuchFile where !isLast {
        guard FileManager.default.fileExists(atPath: directory.path) else { return }
      } catch {
        return Console.error("Left behind: \(directory.path): \(error)")
      }
    }
  }
}
