import Foundation
import Synchronization

/// One `fanfare` process: started like any user would, ended like any supervisor would.
final class RoleProcess: Sendable {
  let name: String
  /// What the process says on standard output, line by line.
  private let lines: AsyncStream<String>
  /// Its exit status, once.
  private let ended: AsyncStream<Int32>
  private let process: Mutex<Process>
  private let errors: URL

  /// The program that was built along with these tests.
  static let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    .appending(path: "fanfare")

  init(
    _ arguments: [String], name: String, environment: [String: String] = [:], program: URL = program, directory: URL
  ) throws {
    self.name = name
    let (lines, line) = AsyncStream.makeStream(of: String.self)
    let (ended, end) = AsyncStream.makeStream(of: Int32.self)
    (self.lines, self.ended) = (lines, ended)
    errors = directory.appending(path: "\(name)-\(UUID()).log")
    try Data().write(to: errors)
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = directory
    // A developer's own configuration is none of the test's.
    process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("FANFARE_") }.merging(environment) { $1 }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = try FileHandle(forWritingTo: errors)
    process.standardInput = FileHandle.nullDevice
    let splitter = LineSplitter(line)
    output.fileHandleForReading.readabilityHandler = { handle in
      let data = handle.availableData
      if data.isEmpty { handle.readabilityHandler = nil }
      splitter.take(data)
    }
    process.terminationHandler = { process in
      end.yield(process.terminationStatus)
      end.finish()
    }
    try process.run()
    self.process = Mutex(process)
  }

  /// The next line on standard output. Throws when there is none within the limit, or no more.
  func line(within limit: Duration = .seconds(60)) async throws -> String {
    let line = try await withTimeLimit(limit, "a line of \(name)\n\(lastWords)") { [lines] in
      await lines.first { _ in true }
    }
    guard let line else { throw Failure("\(name) said nothing more", log: lastWords) }
    return line
  }

  /// The address that the process announces for one of its listeners.
  func address(of listener: String? = nil) async throws -> String {
    while true {
      let words = try await line().split(separator: " ")
      if words.count == 2, words[0] == listener ?? name { return String(words[1]) }
    }
  }

  /// The exit status, once the process has ended. To be asked once.
  func exitStatus(within limit: Duration = .seconds(60)) async throws -> Int32 {
    let status = try await withTimeLimit(limit, "the end of \(name)") { [ended] in await ended.first { _ in true } }
    guard let status else { throw Failure("\(name) has ended before", log: lastWords) }
    return status
  }

  /// Asks the process to end (SIGTERM) and gives its exit status.
  func terminate() async throws -> Int32 {
    process.withLock { $0.terminate() }
    return try await exitStatus()
  }

  /// Ends the process if it still runs, without ceremony.
  func destroy() {
    process.withLock { process in
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
  }

  /// What it wrote to standard error.
  var log: String {
    do { return try String(contentsOf: errors, encoding: .utf8) } catch { return "\(error)" }
  }

  /// The end of what it wrote to standard error; where it crashed, the end of what came before the backtrace.
  var lastWords: String {
    let log = log
    return String(log[..<(log.range(of: "*** Program crashed")?.upperBound ?? log.endIndex)].suffix(4000))
  }

  /// What went wrong with a process, with the end of its log.
  struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ problem: String, log: String) {
      description = "\(problem)\n\(log)"
    }
  }
}

/// Makes lines of what comes in pieces.
private final class LineSplitter: Sendable {
  private let rest = Mutex(Data())
  private let line: AsyncStream<String>.Continuation

  init(_ line: AsyncStream<String>.Continuation) {
    self.line = line
  }

  /// Takes the next piece; an empty one is the end.
  func take(_ data: Data) {
    rest.withLock { rest in
      rest += data
      while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
        line.yield(String(decoding: rest[..<newline], as: UTF8.self))
        rest = Data(rest[rest.index(after: newline)...])
      }
      guard data.isEmpty else { return }
      if !rest.isEmpty { line.yield(String(decoding: rest, as: UTF8.self)) }
      line.finish()
    }
  }
}
