import Glibc

/// What the system says of an open file, and does with a path.
struct FileStatus {
  /// In bytes.
  let size: Int64
  /// When its contents changed last: seconds and nanoseconds since the epoch.
  let modified: (seconds: Int, nanoseconds: Int)

  /// Nil unless it is a regular file: one that has a size and can be read from anywhere.
  init?(of descriptor: Int32) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    size = Int64(status.st_size)
    modified = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }

  /// Gives a file another path, in the place of what is there, at once. False when that failed.
  static func rename(_ path: String, to target: String) -> Bool { unsafe Glibc.rename(path, target) == 0 }
}
