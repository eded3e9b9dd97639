import Crypto
import FanfareCore
import Foundation
import Registry

/// The source of an import: a file, or standard input.
struct ImportSource {
  let handle: FileHandle
  /// The size in bytes; nil for a pipe.
  let size: Int64?
  /// The identity of the file's contents, for continuing an import; nil if an import cannot continue.
  let identity: ImportID?

  /// The size in bytes of the two samples, from the beginning and the end.
  private static let sample = 64 * 1024

  /// Opens the file, or standard input if nil. Throws when it cannot be read.
  init(path: String?) throws {
    handle = try path.map { try FileHandle(forReadingFrom: URL(fileURLWithPath: $0)) } ?? .standardInput
    guard let status = FileStatus(of: handle.fileDescriptor) else {
      (size, identity) = (nil, nil)
      return
    }
    size = status.size
    // A changed file is a different source. The path does not count, because one file can have several.
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
