import Foundation

/// Locks a registry's file as another process would that reads and writes it at once and takes its time: while it does,
/// nobody else reads or writes.
///
/// Processes that share an SQLite file in WAL mode agree on its `-shm` file: byte 120 is locked by who writes, bytes
/// 123 to 127 are shared by those who read (see SQLite's walformat, "WAL locks"). These are the same locks, by the same
/// system call.
struct RegistryLock {
  private static let write: (first: Int, count: Int) = (120, 1)
  private static let read: (first: Int, count: Int) = (123, 5)
  private let file: FileHandle

  /// Opens the file beside the registry, which some process must have open. Closing it would give up this process's
  /// locks.
  init(registry: String) throws {
    file = try FileHandle(forUpdating: URL(fileURLWithPath: registry + "-shm"))
  }

  /// Takes both locks, as soon as nobody has them.
  func lock() async throws {
    for bytes in [Self.write, Self.read] {
      while !set(F_WRLCK, bytes) { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  /// Gives them back.
  func unlock() {
    for bytes in [Self.read, Self.write] { _ = set(F_UNLCK, bytes) }
  }

  /// False when another process is in the way.
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
