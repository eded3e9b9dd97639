import Foundation

/// A file that is written beside the place where it belongs, and put there only once it is whole: nobody ever sees a part of it there.
final class ReplacedFile {
  private let target: String
  private let partial: String
  private let handle: FileHandle

  /// Begins a file, which its owner alone may read. Throws when none can be made there.
  init(path: String) throws {
    target = path
    partial = "\(path).\(ProcessInfo.processInfo.processIdentifier).partial"
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
}
