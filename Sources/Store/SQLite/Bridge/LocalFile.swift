import Glibc

/// The file of a database on this machine, as it was when it was opened.
///
/// A program that keeps a file open does not notice that it was deleted or replaced: its changes are lost when it ends,
/// and other programs do not see them.
package struct LocalFile: Sendable {
  /// Which file a path names.
  package struct Identity: Hashable, Sendable {
    let device: UInt
    let inode: UInt
  }

  package let path: String
  private let identity: Identity?

  /// Remembers the file that is at the path now.
  package init(at path: String) {
    self.path = path
    identity = Self.identity(of: path)
  }

  /// Whether the path still names the file. Costs one system call of about a microsecond.
  package var isInPlace: Bool { identity != nil && Self.identity(of: path) == identity }

  /// The file at the path; nil if there is none.
  package static func identity(of path: String) -> Identity? {
    status(of: path).map { Identity(device: UInt($0.st_dev), inode: UInt($0.st_ino)) }
  }

  /// Creates an empty file that only its owner may read, unless there is one. SQLite gives its log and its index the
  /// permissions of the file. A failure is left to whoever opens the file.
  package static func createPrivate(at path: String) {
    let descriptor = unsafe open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
    if descriptor >= 0 { close(descriptor) }
  }

  /// Puts a file in the place of another one on the same file system, at once. Returns false if that fails.
  package static func move(_ path: String, to place: String) -> Bool { unsafe rename(path, place) == 0 }

  /// Whether users other than the owner may read the file.
  package static func isReadableByOthers(at path: String) -> Bool {
    status(of: path).map { $0.st_mode & (S_IRGRP | S_IROTH) != 0 } ?? false
  }

  /// The sizes of a SQLite database and of its file system, in bytes.
  package struct Space: Hashable, Sendable {
    /// The database with its write-ahead log.
    package let database: Int
    /// The file system.
    package let disk: Int
    /// The part of the file system that unprivileged users may still fill.
    package let free: Int
  }

  /// Measures a database and its file system; nil if there is none. Costs three system calls.
  package static func space(at path: String) -> Space? {
    var disk = statvfs()
    guard let file = status(of: path), unsafe statvfs(path, &disk) == 0 else { return nil }
    let log = status(of: path + "-wal")?.st_size ?? 0
    let block = Int(disk.f_frsize)
    return Space(database: Int(file.st_size + log), disk: Int(disk.f_blocks) * block, free: Int(disk.f_bavail) * block)
  }

  private static func status(of path: String) -> stat? {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? status : nil
  }
}
