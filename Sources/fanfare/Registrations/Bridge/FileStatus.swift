// The compiler looks for `stat` in whichever of these modules it has loaded first.
import CDispatch
import CoreFoundation
import Glibc

/// The size and modification time of an open file.
struct FileStatus {
  /// The size in bytes.
  let size: Int64
  /// The modification time: seconds and nanoseconds since the epoch.
  let modified: (seconds: Int, nanoseconds: Int)

  /// Reads the status of an open file.
  ///
  /// Nil unless it is a regular file, which has a size and can be read at any offset.
  init?(of descriptor: Int32) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    size = Int64(status.st_size)
    modified = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }

  /// Renames a file atomically and replaces the target. Returns false on failure.
  static func rename(_ path: String, to target: String) -> Bool { unsafe Glibc.rename(path, target) == 0 }
}
