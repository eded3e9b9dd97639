import Foundation
import Testing

/// The hostile client `peer.py`: a Python program that shares no code with this project.
enum HTTP2Peer {
  private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "peer.py")

  /// Whether Python and its package h2 are installed.
  static let isAvailable: Bool = {
    let process = start(["-c", "import h2"], output: FileHandle.nullDevice)
    process?.waitUntilExit()
    return process?.terminationStatus == 0
  }()

  /// Carries out a case, or all of them, and returns what came of each. `isReady` is called when the case prints a line
  /// of its own; when it returns, the case goes on.
  static func run(_ name: String? = nil, port: Int, isReady: (() async throws -> Void)? = nil) async throws
    -> [String: String]
  {
    var results: [String: String] = [:]
    for line in try await lines(name.map { [$0] } ?? [], port: port, isReady: isReady) {
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.count == 2 { results[String(parts[0])] = parts[1].trimmingCharacters(in: .whitespaces) }
    }
    return results
  }

  /// Runs the program and returns what it prints.
  static func lines(_ arguments: [String], port: Int, isReady: (() async throws -> Void)? = nil) async throws
    -> [Substring]
  {
    let (output, input) = (Pipe(), Pipe())
    let process = try #require(
      start([script.path, String(port)] + arguments, output: output.fileHandleForWriting, input: input))
    defer { process.waitUntilExit() }
    // The end of the output is that of the process alone.
    try output.fileHandleForWriting.close()
    var text = ""
    if let isReady {
      text = await read(output.fileHandleForReading, toEnd: false)
      try await isReady()
    }
    try input.fileHandleForWriting.close()
    text += await read(output.fileHandleForReading, toEnd: true)
    return text.split(separator: "\n")
  }

  /// Runs nghttp2's load generator and returns its report, or nil if it is not installed.
  static func load(_ arguments: [String]) async throws -> String? {
    let output = Pipe()
    guard let process = start(arguments, program: "h2load", output: output.fileHandleForWriting) else { return nil }
    defer { process.waitUntilExit() }
    try output.fileHandleForWriting.close()
    let text = await read(output.fileHandleForReading, toEnd: true)
    return text.isEmpty ? nil : text
  }

  private static func start(
    _ arguments: [String], program: String = "python3", output: FileHandle, input: Pipe? = nil
  ) -> Process? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardOutput = output
    if let input { process.standardInput = input }
    if output === FileHandle.nullDevice { process.standardError = FileHandle.nullDevice }
    // What cannot be started is not available.
    guard (try? process.run()) != nil else { return nil }
    return process
  }

  /// Reads on a thread of its own, because reading blocks.
  private static func read(_ handle: FileHandle, toEnd: Bool) async -> String {
    await withCheckedContinuation { continuation in
      Thread {
        let data = toEnd ? handle.readDataToEndOfFile() : handle.availableData
        continuation.resume(returning: String(decoding: data, as: UTF8.self))
      }.start()
    }
  }
}
