import Foundation
import NIOCore
import NIOPosix

/// A program of somebody else, run for a test; ends with it.
final class ChildProcess {
  /// The lines it has printed to its standard output.
  let lines = Probe<String>()
  private let process = Process()
  private let output = Pipe()

  /// Starts the program at `executable`.
  init(_ executable: String, _ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    let pending = PendingLine()
    output.fileHandleForReading.readabilityHandler = { [lines] handle in
      let data = handle.availableData
      if data.isEmpty { handle.readabilityHandler = nil }
      lines.add(contentsOf: pending.lines(adding: data))
    }
    try process.run()
  }

  deinit {
    output.fileHandleForReading.readabilityHandler = nil
    // Not SIGTERM: a child inherits the signal mask of the thread that starts it, and the concurrency threads block that one.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// The full path of a program, nil if it is not installed.
  static func find(_ program: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Whether the program ends with status 0.
  static func succeeds(_ executable: String, _ arguments: [String]) -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }  // what cannot be run does not succeed
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  /// A port that was free a moment ago.
  static func freePort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: "127.0.0.1", port: 0).get()
    let port = channel.localAddress?.port
    try await channel.close()
    guard let port else { throw ChannelError.alreadyClosed }
    return port
  }

  /// A new empty folder, for the test to remove.
  static func temporaryFolder() throws -> String {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("fanfare-" + UUID().uuidString)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url.path
  }
}
