import Foundation
import Synchronization

/// A process that this one has started: a role of the product, or a peer of it. It ends with `terminate()` or
/// `destroy()`, and in any case with this process, however that ends, where util-linux's `setpriv` is installed.
final class ChildProcess: Sendable {
  /// What it is called in errors.
  let name: String
  /// Its id.
  let id: Int32
  /// What it says on standard output, line by line.
  private let lines: AsyncStream<String>
  /// Its exit status, once.
  private let ended: AsyncStream<Int32>
  private let process: Mutex<Process>
  /// Empty once the process has ended and been waited for.
  private let gone = DispatchGroup()
  private let errors: URL
  private let file: URL?

  /// This program, or the one that was built along with the tests that this process is.
  static let workshop = {
    let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    return own.pathExtension == "xctest" ? own.deletingLastPathComponent().appending(path: "fanfare-dev") : own
  }()

  /// Whether a variable is for a key that the product does not have.
  private static func isOfWorkshop(_ variable: String) -> Bool {
    [
      "FANFARE_SIMULATOR_", "FANFARE_BROKER_", "FANFARE_KAFKA_EMBEDDED", "FANFARE_OPERATIONS_CLOCK_OFFSET_FILE",
    ].contains { variable.hasPrefix($0) }
  }

  /// The product, which is built into the same directory.
  static let product = workshop.deletingLastPathComponent().appending(path: "fanfare")

  /// Starts a role of the product: with this program, which alone has the settings of an embedded cluster and a clock
  /// that can be stepped, or with the product itself.
  static func role(
    _ arguments: [String], environment: [String: String] = [:], inWorkshop: Bool, directory: URL
  ) throws -> ChildProcess {
    try ChildProcess(
      (inWorkshop ? ["role"] : []) + arguments, name: arguments[0], environment: environment,
      program: inWorkshop ? workshop : product, directory: directory)
  }

  /// The full path of a program of the search path; nil if it is not installed.
  static func find(_ program: String) -> URL? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").map { URL(fileURLWithPath: "\($0)/\(program)") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  /// Starts it in the directory, where its standard error goes, too. Throws when it cannot be started.
  ///
  /// With `keepsOutput`, standard output goes into a file, for `output()`, instead of being read line by line.
  init(
    _ arguments: [String], name: String, environment: [String: String] = [:], program: URL = workshop, directory: URL,
    keepsOutput: Bool = false
  ) throws {
    self.name = name
    let (lines, line) = AsyncStream.makeStream(of: String.self)
    let (ended, end) = AsyncStream.makeStream(of: Int32.self)
    (self.lines, self.ended) = (lines, ended)
    errors = directory.appending(path: "\(name)-\(UUID()).log")
    try Data().write(to: errors)
    let process = Process()
    guard FileManager.default.isExecutableFile(atPath: program.path) else {
      throw Failure("\(program.path) cannot be run", log: "")
    }
    let setpriv = Self.find("setpriv")
    process.executableURL = setpriv ?? program
    process.arguments = (setpriv == nil ? [] : ["--pdeathsig", "KILL", "--", program.path]) + arguments
    process.currentDirectoryURL = directory
    // The variables that configure this process, or its user's own deployment, are not for the child.
    let own = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("FANFARE_") }
    process.environment = own.merging(environment.filter { program != Self.product || !Self.isOfWorkshop($0.key) }) {
      $1
    }
    let output: FileHandle?
    if keepsOutput {
      let file = directory.appending(path: "\(name)-\(UUID()).out")
      try Data().write(to: file)
      process.standardOutput = try FileHandle(forWritingTo: file)
      self.file = file
      output = nil
    } else {
      let pipe = Pipe()
      process.standardOutput = pipe
      output = pipe.fileHandleForReading
      file = nil
    }
    process.standardError = try FileHandle(forWritingTo: errors)
    process.standardInput = FileHandle.nullDevice
    let (started, hasEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    gone.enter()
    process.terminationHandler = { [gone] process in
      gone.leave()
      end.yield(process.terminationStatus)
      end.finish()
      hasEnded.signal()
    }
    let failure = Mutex<(any Error)?>(nil)
    // A thread of its own that lives as long as the process: the kernel ends the process with the thread that has
    // started it. It also reads, as Foundation's readability handlers crash in Dispatch when a handle goes while its
    // event is on the way.
    Thread.detachNewThread { [gone] in
      do { try process.run() } catch {
        gone.leave()
        failure.withLock { $0 = error }
      }
      let isRunning = failure.withLock { $0 == nil }
      started.signal()
      guard isRunning else { return }
      if let output {
        var splitter = LineSplitter(line)
        while case let data = output.availableData, !data.isEmpty { splitter.take(data) }
        splitter.take(Data())
      }
      hasEnded.wait()
    }
    started.wait()
    if let error = failure.withLock({ $0 }) { throw error }
    id = process.processIdentifier
    self.process = Mutex(process)
  }

  /// The next line on standard output. Throws when there is none within the limit, or no more.
  func line(within limit: Duration = .seconds(60)) async throws -> String {
    let line = try await withTimeLimit(limit, "a line of \(self.name)\n\(self.lastWords)") { [lines] in
      await lines.first { _ in true }
    }
    guard let line else { throw Failure("\(name) said nothing more", log: lastWords) }
    return line
  }

  /// The address that a role announces for one of its listeners.
  func address(of listener: String? = nil) async throws -> String {
    while true {
      let words = try await line().split(separator: " ")
      if words.count == 2, words[0] == listener ?? name { return String(words[1]) }
    }
  }

  /// What it has written to standard output so far, of a process that keeps it.
  func output() throws -> String { try file.map { try String(contentsOf: $0, encoding: .utf8) } ?? "" }

  /// The exit status, once the process has ended. To be asked once.
  func exitStatus(within limit: Duration = .seconds(60)) async throws -> Int32 {
    let status = try await withTimeLimit(limit, "the end of \(self.name)") { [ended] in await ended.first { _ in true }
    }
    guard let status else { throw Failure("\(name) has ended before", log: lastWords) }
    return status
  }

  /// Asks the process to end (SIGTERM) and gives its exit status.
  func terminate() async throws -> Int32 {
    process.withLock { $0.terminate() }
    return try await exitStatus()
  }

  /// Whether it has not ended yet.
  var isRunning: Bool { process.withLock { $0.isRunning } }

  /// Whether it has ended by itself and with a failure; false where somebody has ended it.
  var hasFailed: Bool {
    process.withLock { process in
      guard !process.isRunning else { return false }
      let status = process.terminationStatus
      return process.terminationReason == .exit
        ? status != 0 : ![SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM].contains(status)
    }
  }

  /// Ends the process if it still runs, without ceremony, and returns when it is gone: what it has used is then among
  /// what this process's ended children have used, where a measurement that begins next does not take it for its own
  /// child's. Blocks for some milliseconds, five seconds at most.
  func destroy() {
    process.withLock { process in
      // Not SIGTERM: a child inherits the signal mask of the thread that starts it, and the concurrency threads block
      // that one.
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
    _ = gone.wait(timeout: .now() + 5)
  }

  /// Sends it a signal, if it still runs.
  func signal(_ number: Int32) {
    process.withLock { process in
      if process.isRunning { kill(process.processIdentifier, number) }
    }
  }

  /// What it has used so far. Throws when it has ended.
  func usage() throws -> ProcessUsage { try ProcessUsage(of: id) }

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
