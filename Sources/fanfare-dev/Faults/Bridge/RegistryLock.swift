import Foundation

/// Locks a registry's file, so that no other process can read or write it.
///
/// It acts like a slow process that uses the file. Processes that share a SQLite file in WAL mode lock bytes of its
/// `-shm` file: a writer byte 120, readers share bytes 123 to 127 (see SQLite's walformat, "WAL locks"). This type
/// takes the same locks with the same system call.
struct RegistryLock {
  private static let write: (first: Int, count: Int) = (120, 1)
  private static let read: (first: Int, count: Int) = (123, 5)
  private let file: FileHandle

  /// Opens the `-shm` file, which exists while a process has the registry open.
  ///
  /// Closing it would release this process's locks.
  init(registry: String) throws {
    file = try FileHandle(forUpdating: URL(fileURLWithPath: registry + "-shm"))
  }

  /// Waits for both locks.
  func lock() async throws {
    for bytes in [Self.write, Self.read] {
      while !set(F_WRLCK, bytes) { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  /// Releases both locks.
  func unlock() {
    for bytes in [Self.read, Self.write] { _ = set(F_UNLCK, bytes) }
  }

  /// Returns false if another process holds the lock.
  private func set(_ kind: Int32, _ bytes: (first: Int, count: Int)) -> Bool {
    var lock = flock()
    lock.l_type = Int16(kind)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = bytes.first
    lock.l_len = bytes.count
    return unsafe withUnsafeMutablePointer(to: &lock) {
      unsafe fcntl(file.fileDescriptor, F_SETLK, UnsafeMutableRawPointer($0)) == 0
    }
  }
}
