import Glibc

/// The owner and the permissions of a file, and of the file system it is on.
package struct FileAccess: Hashable {
  /// The owner's id.
  let owner: UInt32
  /// The permission bits, such as 0o600.
  let mode: UInt32
  /// Whether the file system is mounted read-only.
  let isReadOnlyMount: Bool

  /// The id of the user that runs this process.
  package static var user: UInt32 { geteuid() }

  /// Reads them, following symbolic links; nil if that fails.
  package init?(path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    owner = status.st_uid
    mode = UInt32(status.st_mode & 0o7777)
    var system = statvfs()
    isReadOnlyMount = unsafe statvfs(path, &system) == 0 && system.f_flag & UInt(ST_RDONLY) != 0
  }

  package init(owner: UInt32, mode: UInt32, isReadOnlyMount: Bool) {
    (self.owner, self.mode, self.isReadOnlyMount) = (owner, mode, isReadOnlyMount)
  }
}
