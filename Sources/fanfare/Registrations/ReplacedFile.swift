import Foundation
import Roles

/// A file that is written next to its final path and moved there when it is complete.
///
/// So no reader sees an incomplete file. If the path is a symbolic link, its target is replaced.
final class ReplacedFile {
  /// The path exists and is not a regular file.
  struct Irregular: Error {}

  /// The kernel's limit of symbolic links to follow.
  private static let maximumLinks = 40

  private let target: String
  private let partial: String
  private let handle: FileHandle

  /// Creates the file, readable only by its owner.
  ///
  /// Throws `Irregular` if the path exists and is not a regular file, and other errors if no file can be created.
  init(path: String) throws {
    target = try Self.place(path)
    partial = "\(target).\(ProcessInfo.processInfo.processIdentifier).partial"
    guard FileManager.default.createFile(atPath: partial, contents: nil, attributes: [.posixPermissions: 0o600]) else {
      throw CocoaError(.fileWriteNoPermission, userInfo: [NSFilePathErrorKey: path])
    }
    handle = try FileHandle(forWritingTo: URL(fileURLWithPath: partial))
  }

  /// Appends bytes to the file.
  func write(_ bytes: [UInt8]) throws {
    try handle.write(contentsOf: bytes)
  }

  /// Syncs the file and moves it to its final path.
  func finish() throws {
    try handle.synchronize()
    try handle.close()
    guard FileStatus.rename(partial, to: target) else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: target])
    }
  }

  /// Deletes the unfinished file.
  func abandon() {
    do {
      try handle.close()
      try FileManager.default.removeItem(atPath: partial)
    } catch {
      Console.error("Left behind: \(partial)")
    }
  }

  /// Follows all symbolic links to a regular file or a path without one.
  private static func place(_ path: String) throws -> String {
    var path = path
    for _ in 0...maximumLinks {
      switch kind(at: path) {
      case nil, .typeRegular: return path
      case .typeSymbolicLink:
        let destination = try FileManager.default.destinationOfSymbolicLink(atPath: path)
        // Not normalised: the kernel must resolve `..` after a folder that is a link.
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        path = destination.hasPrefix("/") ? destination : "\(folder)\(destination)"
      default: throw Irregular()
      }
    }
    throw Irregular()
  }

  /// The kind of file at the path, without following a link; nil if there is none.
  private static func kind(at path: String) -> FileAttributeType? {
    do { return try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType } catch {
      // A missing or unreadable folder also gives nil; creating the file there fails at once.
      return nil
    }
  }
}
