import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A foreign program run for a test. It ends with the test, and with the test's process, however that ends.
final class ChildProcess {
  /// The lines of its standard output.
  let lines = Probe<String>()
  private let process = Process()
  private let output = Pipe()
  private let ended = Probe<Void>()

  /// Starts the program at `executable`.
  init(_ executable: String, _ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    process.arguments = ["--pdeathsig", "KILL", "--", executable] + arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    let started = DispatchSemaphore(value: 0)
    let failure = Mutex<(any Error)?>(nil)
    // Its own thread: Foundation's readability handlers crash in Dispatch when a handle closes while an event is
    // pending. The same thread starts the program, because the kernel ends the program with the thread that started it.
    Thread.detachNewThread { [process, lines, ended, handle = output.fileHandleForReading] in
      do { try process.run() } catch { failure.withLock { $0 = error } }
      started.signal()
      let pending = PendingLine()
      while case let data = handle.availableData, !data.isEmpty { lines.add(contentsOf: pending.lines(adding: data)) }
      ended.add(())
    }
    started.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }

  deinit {
    // Not SIGTERM: a child inherits the signal mask of the thread that starts it, and concurrency threads block that
    // signal.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Ends the program and returns all its lines: output from just before an answer may be read after that answer.
  func end() async throws -> [String] {
    kill(process.processIdentifier, SIGKILL)
    try await ended.wait(count: 1)
    return lines.values
  }

  /// The full path of a program, nil if it is not installed.
  static func find(_ program: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").map { "\($0)/\(program)" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
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

  /// A port that was free a moment ago, below the kernel's ephemeral ports, which the servers of other tests use.
  static func freePort() async throws -> Int {
    while true {
      let port = Int.random(in: 20_000..<32_000)
      do {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: "127.0.0.1", port: port)
          .get().close()
        return port
      } catch let error as IOError where error.errnoCode == EADDRINUSE {}
    }
  }

  /// A new empty folder, for the test to remove.
  static func temporaryFolder() throws -> String {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("fanfare-" + UUID().uuidString)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url.path
  }
}

/// Splits a stream of bytes into lines.
final class PendingLine: Sendable {
  private let rest = Mutex(Data())

  /// The lines that `data` completes.
  func lines(adding data: Data) -> [String] {
    rest.withLock { rest in
      rest += data
      var lines: [String] = []
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        lines.append(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
        rest = Data(rest[(end + 1)...])
      }
      return lines
    }
  }
}

/// The misbehaving server, and whether it can run.
enum H2FaultTool {
  /// The path of the tool.
  static let path =
    ProcessInfo.processInfo.environment["FANFARE_H2FAULT"]
    ?? URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../../shared/tools/h2fault.py")
    .standardizedFileURL.path

  /// The Python interpreter, nil if there is none.
  static let python = ChildProcess.find("python3")

  /// Whether the tool, Python and its package are installed.
  static let isAvailable: Bool = {
    guard let python, FileManager.default.fileExists(atPath: path) else { return false }
    return ChildProcess.succeeds(python, ["-c", "import h2"])
  }()
}
