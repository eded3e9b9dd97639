import Foundation

/// A directory that is a small file system of its own, to be filled to the last byte.
struct SmallDisk: Sendable {
  let directory: URL

  /// Whether this process may make one.
  static var isPermitted: Bool { geteuid() == 0 }

  private var ballast: URL { directory.appending(path: "ballast") }

  /// Makes the directory one, of eight megabytes in memory.
  func mount() async throws {
    try await run("/bin/mount", ["-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", directory.path])
  }

  /// Makes it a directory like any other again; what it held is gone. Also in a task that is cancelled.
  func unmount() async throws {
    // In a task of its own, which nobody cancels: a mount would outlive this process.
    try await Task {
      // Lazily: who has read the file in this process may still hold it open.
      try await run("/bin/umount", ["-l", directory.path])
    }.value
  }

  /// Takes all the room that is left.
  func fill() throws {
    try Data().write(to: ballast)
    let file = try FileHandle(forWritingTo: ballast)
    for size in [64 * 1024, 1024] {
      // Until it throws: that there is no more room is what is wanted.
      while (try? file.write(contentsOf: Data(count: size))) != nil {}
    }
    try file.close()
  }

  /// Gives it back.
  func free() throws { try FileManager.default.removeItem(at: ballast) }

  private func run(_ program: String, _ arguments: [String]) async throws {
    let process = try ChildProcess(
      arguments, name: "mount", program: URL(fileURLWithPath: program),
      directory: directory.deletingLastPathComponent(), keepsOutput: true)
    guard try await process.exitStatus() == 0 else { throw BenchError("\(program) failed: \(process.lastWords)") }
  }
}
