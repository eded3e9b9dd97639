import Foundation
import Testing

@testable import fanfare_dev

/// Killing a demo, a benchmark or a test also ends all processes that it started.
@Suite(.timeLimit(.minutes(2))) struct OrphanTests {
  @Test(.enabled(if: ChildProcess.find("setpriv") != nil, "setpriv is not installed (Debian: util-linux)"))
  func childrenEndWithKilledProcess() async throws {
    try await withDirectory("orphan") { directory in
      let parent = try ChildProcess(
        ["demo", "--broadcast", "10000"], name: "demo", directory: directory, keepsOutput: true)
      defer { parent.destroy() }
      try await eventually("the demonstration's worker") { !Self.children(of: parent.id).isEmpty }
      let children = Self.children(of: parent.id)
      parent.destroy()
      try await eventually("the worker's end") { children.allSatisfy { !Self.isRunning($0) } }
    }
  }

  /// The running children of the process that are Fanfare programs.
  private static func children(of id: Int32) -> [Int32] {
    // A failure to read /proc fails the test by its time limit.
    let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return entries.compactMap { Int32($0) }.filter { child in
      guard let (name, _, parent) = stat(of: child) else { return false }
      return parent == id && name.hasPrefix("fanfare")
    }
  }

  private static func isRunning(_ id: Int32) -> Bool {
    guard let (_, state, _) = stat(of: id) else { return false }
    // A zombie has ended, but its parent has not yet read its status.
    return state != "Z"
  }

  private static func stat(of id: Int32) -> (name: Substring, state: Substring, parent: Int32?)? {
    // The process may have ended meanwhile.
    guard let text = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8),
      let start = text.firstIndex(of: "("),
      let end = text.lastIndex(of: ")")
    else { return nil }
    let fields = text[end...].split(separator: " ")
    guard fields.count > 2 else { return nil }
    return (text[text.index(after: start)..<end], fields[1], Int32(fields[2]))
  }
}
