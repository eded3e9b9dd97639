import Crypto
import FanfareCore
import Foundation
import Registry

/// Where registrations are imported from: a file, or standard input.
struct ImportSource {
  let handle: FileHandle
  /// The file's size in bytes; nil for what has none, as a pipe.
  let size: Int64?
  /// What tells the file from others, so that an import that was interrupted can go on; nil where it cannot.
  let identity: ImportID?

  /// How much of the beginning and of the end tells files apart.
  private static let sample = 64 * 1024

  /// Opens a file; nil is standard input. Throws when there is none that can be read.
  init(path: String?) throws {
    handle = try path.map { try FileHandle(forReadingFrom: URL(fileURLWithPath: $0)) } ?? .standardInput
    guard let status = FileStatus(of: handle.fileDescriptor) else {
      (size, identity) = (nil, nil)
      return
    }
    size = status.size
    // A file that was changed is another one. The path says nothing: it may be given in several ways.
    var digest = SHA256()
    digest.update(data: Data("\(status.size) \(status.modified)\n".utf8))
    for offset in [0, max(0, status.size - Int64(Self.sample))] {
      try handle.seek(toOffset: UInt64(offset))
      digest.update(data: try handle.read(upToCount: Self.sample) ?? Data())
    }
    try handle.seek(toOffset: 0)
    identity = ImportID(bytes: Array(digest.finalize()).prefix(16))
  }
}
