import Foundation

/// A directory that is a small file system of its own and can be filled.
struct SmallDisk: Sendable {
  let directory: URL

  /// Whether this process may mount one.
  static var isPermitted: Bool { geteuid() == 0 }

  private var ballast: URL { directory.appending(path: "ballast") }

  /// Mounts eight megabytes of memory on the directory.
  func mount() async throws {
    try await run("/bin/mount", ["-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", directory.path])
  }

  /// Unmounts the file system, which deletes its contents, even in a cancelled task.
  func unmount() async throws {
    // In a task of its own, which is not cancelled: otherwise the mount would outlive this process.
    try await Task {
      // Lazily, because this process may still have the file open.
      try await run("/bin/umount", ["-l", directory.path])
    }.value
  }

  /// Fills the file system.
  func fill() throws {
    try Data().write(to: ballast)
    let file = try FileHandle(forWritingTo: ballast)
    for size in [64 * 1024, 1024] {
      // The write throws when the file system is full.
      while (try? file.write(contentsOf: Data(count: size))) != nil {}
    }
    try file.close()
  }

  /// Frees the space.
  func free() throws { try FileManager.default.removeItem(at: ballast) }

  private func run(_ program: String, _ arguments: [String]) async throws {
    let process = try ChildProcess(
      arguments, name: "mount", program: URL(fileURLWithPath: program),
      directory: directory.deletingLastPathComponent(), keepsOutput: true)
    guard try await process.exitStatus() == 0 else { throw BenchError("\(program) failed: \(process.lastWords)") }
  }
}
