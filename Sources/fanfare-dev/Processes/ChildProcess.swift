import Foundation
import Synchronization

/// A child process: a role of the product, or another program.
///
/// `terminate()` or `destroy()` ends it. If util-linux's `setpriv` is installed, the kernel kills it when this process
/// ends.
final class ChildProcess: Sendable {
  /// The name in errors.
  let name: String
  /// The process id.
  let id: Int32
  /// Its lines on standard output.
  private let lines: AsyncStream<String>
  /// Its exit status, delivered once.
  private let ended: AsyncStream<Int32>
  private let process: Mutex<Process>
  private let instructions = Mutex<InstructionCounter?>(nil)
  /// The group that is left once the process has ended and this process has waited for it.
  private let gone = DispatchGroup()
  private let errors: URL
  private let file: URL?

  /// This program, or the one built beside the test bundle that this process runs.
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

  /// Starts a role of the product, either in this program (`inWorkshop`) or in the product itself.
  ///
  /// Only this program has the settings of an embedded cluster and of a clock that can be stepped.
  static func role(
    _ arguments: [String], environment: [String: String] = [:], inWorkshop: Bool, directory: URL
  ) throws -> ChildProcess {
    try ChildProcess(
      (inWorkshop ? ["role"] : []) + arguments, name: arguments[0], environment: environment,
      program: inWorkshop ? workshop : product, directory: directory)
  }

  /// The path of a program in PATH or where servers are installed; nil if it is not there.
  static func find(_ program: String) -> URL? {
    let path = (ProcessInfo.processInfo.environment["PATH"] ?? "") + ":/usr/sbin"
    return path.split(separator: ":").map { URL(fileURLWithPath: "\($0)/\(program)") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  /// Starts the program in the directory, which also receives its standard error.
  ///
  /// Throws when the program cannot be started.
  /// With `keepsOutput`, standard output goes to a file, for `output()`, instead of being read line by line.
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
    // The child does not inherit the variables that configure this process or the user's own deployment.
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
    // A thread that lives as long as the process, because the kernel ends the process with the thread that started it.
    // It also reads the output: Foundation's readability handlers crash in Dispatch when a handle is released while its
    // event is pending.
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

  /// The next line on standard output. Throws after the limit, and at the end of the output.
  func line(within limit: Duration = .seconds(60)) async throws -> String {
    let line = try await withTimeLimit(limit, "a line of \(self.name)\n\(self.lastWords)") { [lines] in
      await lines.first { _ in true }
    }
    guard let line else { throw Failure("\(name) printed no further line", log: lastWords) }
    return line
  }

  /// The announced address of one of a role's listeners.
  func address(of listener: String? = nil) async throws -> String {
    while true {
      let words = try await line().split(separator: " ")
      if words.count == 2, words[0] == listener ?? name { return String(words[1]) }
    }
  }

  /// The announced addresses of several of a role's listeners, in that order.
  func addresses(of listeners: String...) async throws -> [String] {
    var found: [String: String] = [:]
    while found.count < listeners.count {
      let words = try await line().split(separator: " ").map(String.init)
      if words.count == 2, listeners.contains(words[0]) { found[words[0]] = words[1] }
    }
    return listeners.compactMap { found[$0] }
  }

  /// The standard output so far of a process that keeps it.
  func output() throws -> String { try file.map { try String(contentsOf: $0, encoding: .utf8) } ?? "" }

  /// Waits for the exit status. Call it once.
  func exitStatus(within limit: Duration = .seconds(60)) async throws -> Int32 {
    let status = try await withTimeLimit(limit, "the end of \(self.name)") { [ended] in await ended.first { _ in true }
    }
    guard let status else { throw Failure("the exit status of \(name) was read before", log: lastWords) }
    return status
  }

  /// Sends SIGTERM and returns the exit status.
  func terminate() async throws -> Int32 {
    process.withLock { $0.terminate() }
    return try await exitStatus()
  }

  var isRunning: Bool { process.withLock { $0.isRunning } }

  /// Whether it ended by itself with a failure; false if a signal from outside ended it.
  var hasFailed: Bool {
    process.withLock { process in
      guard !process.isRunning else { return false }
      let status = process.terminationStatus
      return process.terminationReason == .exit
        ? status != 0 : ![SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM].contains(status)
    }
  }

  /// Kills the process and waits for it, at most five seconds.
  ///
  /// After the wait its CPU time counts for this process's ended children, before the next measurement begins.
  func destroy() {
    process.withLock { process in
      // Not SIGTERM: a child inherits the signal mask of the thread that starts it, and Swift's concurrency threads
      // block it.
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
    _ = gone.wait(timeout: .now() + 5)
  }

  /// Sends a signal if the process runs.
  func signal(_ number: Int32) {
    process.withLock { process in
      if process.isRunning { kill(process.processIdentifier, number) }
    }
  }

  /// Its resource usage so far. Throws when it has ended.
  func usage() throws -> ProcessUsage {
    let counter = instructions.withLock { counter in
      let used = counter ?? InstructionCounter(of: id)
      counter = used
      return used
    }
    return try ProcessUsage(of: id, instructions: counter)
  }

  /// Its standard error.
  var log: String {
    do { return try String(contentsOf: errors, encoding: .utf8) } catch { return "\(error)" }
  }

  /// The end of its standard error; after a crash, the end of the text before the backtrace.
  var lastWords: String {
    let log = log
    return String(log[..<(log.range(of: "*** Program crashed")?.upperBound ?? log.endIndex)].suffix(4000))
  }

  /// A failure of a process, with the end of its log.
  struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ problem: String, log: String) {
      description = "\(problem)\n\(log)"
    }
  }
}

/// Splits chunks of data into lines.
struct LineSplitter {
  private var rest = Data()
  private let line: AsyncStream<String>.Continuation

  /// Passes on each line, and finishes the stream at the end of the input.
  init(_ line: AsyncStream<String>.Continuation) {
    self.line = line
  }

  /// Adds a chunk; an empty one is the end.
  mutating func take(_ data: Data) {
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

/// Waits until a role is ready.
enum Ready {
  /// Requests `/readyz` until it answers 2xx, at the operations listener: the given one or the announced one.
  static func wait(for process: ChildProcess, operations address: String? = nil) async throws {
    let address = if let address { address } else { try await process.address(of: "operations") }
    let client = APIClient(base: "http://" + address)
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      do {
        _ = try await client.request("GET", "/readyz", user: "bench")
        return
      } catch {
        guard error is APIClient.Refusal, ContinuousClock.now < deadline else {
          throw BenchError("\(process.name) is not ready: \(error)\n\(process.lastWords)")
        }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }
}

/// A wait that exceeded its limit.
struct TimeLimitExceeded: Error, CustomStringConvertible {
  let description: String
}

/// Runs `body` with a time limit. Throws `TimeLimitExceeded`; `what` is evaluated only then.
func withTimeLimit<Value: Sendable>(
  _ limit: Duration, _ what: @autoclosure @escaping @Sendable () -> String,
  _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  try await withThrowingTaskGroup(of: Value.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: limit)
      throw TimeLimitExceeded(description: "waited \(limit) for \(what())")
    }
    guard let first = try await group.next() else { throw CancellationError() }
    group.cancelAll()
    return first
  }
}
