import Foundation
import Roles

/// A file that is written beside the place where it belongs, and put there only once it is whole: nobody ever sees a
/// part of it there.
///
/// Where the place is a symbolic link, what it leads to is replaced: whoever reads that is to read the new one.
final class ReplacedFile {
  /// Something is there that a file must not take the place of: a directory, a device, a pipe.
  struct Irregular: Error {}

  /// As many links as the kernel follows before it takes them for a circle.
  private static let maximumLinks = 40

  private let target: String
  private let partial: String
  private let handle: FileHandle

  /// Begins a file, which its owner alone may read. Throws `Irregular` when the place is taken by something else,
  /// another error when no file can be made there.
  init(path: String) throws {
    target = try Self.place(path)
    partial = "\(target).\(ProcessInfo.processInfo.processIdentifier).partial"
    guard FileManager.default.createFile(atPath: partial, contents: nil, attributes: [.posixPermissions: 0o600]) else {
      throw CocoaError(.fileWriteNoPermission, userInfo: [NSFilePathErrorKey: path])
    }
    handle = try FileHandle(forWritingTo: URL(fileURLWithPath: partial))
  }

  /// Writes more of it.
  func write(_ bytes: [UInt8]) throws {
    try handle.write(contentsOf: bytes)
  }

  /// Puts it in its place, in that of whatever is there, once it is on the disk.
  func finish() throws {
    try handle.synchronize()
    try handle.close()
    guard FileStatus.rename(partial, to: target) else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: target])
    }
  }

  /// Throws it away.
  func abandon() {
    do {
      try handle.close()
      try FileManager.default.removeItem(atPath: partial)
    } catch {
      Console.error("Left behind: \(partial)")
    }
  }

  /// Where a path leads to, over all symbolic links: a regular file, or nothing yet.
  private static func place(_ path: String) throws -> String {
    var path = path
    for _ in 0...maximumLinks {
      switch kind(at: path) {
      case nil, .typeRegular: return path
      case .typeSymbolicLink:
        let destination = try FileManager.default.destinationOfSymbolicLink(atPath: path)
        // Joined as they are: `..` after a folder that is a link itself is the kernel's to follow.
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        path = destination.hasPrefix("/") ? destination : "\(folder)\(destination)"
      default: throw Irregular()
      }
    }
    throw Irregular()
  }

  /// What is there, a link for itself; nil where nothing is.
  private static func kind(at path: String) -> FileAttributeType? {
    do { return try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType } catch {
      // Nor can anything be seen where a folder is missing or closed: that no file can be made there is found out at
      // once.
      return nil
    }
  }
}
