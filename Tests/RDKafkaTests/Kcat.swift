import Foundation
import Testing

/// kcat, an independent Kafka client, in its own process.
final class Kcat {
  private static let path = ["/usr/bin/kcat", "/usr/local/bin/kcat"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }
  private let process = Process()
  private let (input, output) = (Pipe(), Pipe())
  private let ends: AsyncStream<Int32>

  /// Whether kcat is installed.
  static var isInstalled: Bool { path != nil }

  /// Starts kcat with an input that stays open.
  init(_ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: try #require(Self.path))
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    let (ends, end) = AsyncStream.makeStream(of: Int32.self)
    self.ends = ends
    process.terminationHandler = {
      end.yield($0.terminationStatus)
      end.finish()
    }
    try process.run()
  }

  deinit { kill() }

  /// Runs kcat with that input and returns its output.
  static func run(_ arguments: [String], input: String = "") async throws -> String {
    let kcat = try Kcat(arguments)
    try kcat.write(input)
    try kcat.input.fileHandleForWriting.close()
    let watchdog = Task { [process = kcat.process] in
      try await Task.sleep(for: .seconds(30))
      // Not SIGTERM, which a child of a concurrency thread inherits blocked.
      Foundation.kill(process.processIdentifier, SIGKILL)
    }
    let status = await kcat.end()
    watchdog.cancel()
    #expect(status == 0)
    return String(decoding: try kcat.output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// Writes more input.
  func write(_ text: String) throws { try input.fileHandleForWriting.write(contentsOf: Data(text.utf8)) }

  /// Kills it, like a crash.
  func kill() {
    if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
  }

  /// The exit status; suspends until the process ends. Call once.
  func end() async -> Int32? { await ends.first { _ in true } }
}
