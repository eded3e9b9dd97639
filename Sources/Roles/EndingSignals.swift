import Foundation
package import UnixSignals

extension UnixSignal {
  /// The signals by which somebody at a terminal ends a program: SIGINT, SIGTERM and, when the terminal goes away,
  /// SIGHUP. Not SIGHUP where the program was started to outlive its terminal, with that signal ignored: trapping it
  /// would undo that. To be asked before any signal is trapped.
  package static var ending: [UnixSignal] { outlivesItsTerminal ? [.sigint, .sigterm] : [.sigint, .sigterm, .sighup] }

  /// Whether this process was started with SIGHUP ignored, as nohup(1) does; see proc_pid_status(5).
  private static var outlivesItsTerminal: Bool {
    // Where there is no /proc it cannot be told, and a terminal is what is usual.
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let ignored = status.split(separator: "\n").first { $0.hasPrefix("SigIgn:") }
    guard let mask = ignored?.split(separator: "\t").last.flatMap({ UInt64($0, radix: 16) }) else { return false }
    return mask & 1 << UInt64(SIGHUP - 1) != 0
  }
}
