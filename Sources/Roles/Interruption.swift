import ArgumentParser
import Foundation
package import UnixSignals

/// Runs `body` and cancels it on SIGINT, SIGTERM or SIGHUP (see `UnixSignal.ending`).
///
/// After the cancellation `body` can end its child processes and remove its directories. The function then throws
/// `ExitCode` with the status that a shell reports for a process that the signal ended. A second signal, at least a
/// second later, ends the process at once.
package func endingWithSignals(_ body: @escaping @Sendable () async throws -> Void) async throws {
  let signals = await UnixSignalsSequence(trapping: UnixSignal.ending)
  let work = Task { try await body() }
  let listening = Task {
    var first: (signal: UnixSignal, at: ContinuousClock.Instant)?
    for await signal in signals {
      guard let first else {
        first = (signal, .now)
        work.cancel()
        continue
      }
      // Cancellation did not end the work, and the user insists. A second signal within a second is a copy of the
      // first: timeout(1), for example, signals the process and then its group.
      if ContinuousClock.now - first.at >= .seconds(1) { exit(128 + signal.rawValue) }
    }
    return first?.signal
  }
  let result = await work.result
  listening.cancel()
  // Errors after a signal are consequences of the cancellation.
  if let signal = await listening.value { throw ExitCode(128 + signal.rawValue) }
  try result.get()
}

extension UnixSignal {
  /// The signals with which a user ends a program: SIGINT, SIGTERM and, when the terminal closes, SIGHUP.
  ///
  /// SIGHUP is excluded if the process was started with that signal ignored, as nohup(1) does: a handler would override
  /// nohup. Read this property before you trap any signal.
  package static var ending: [UnixSignal] { outlivesItsTerminal ? [.sigint, .sigterm] : [.sigint, .sigterm, .sighup] }

  /// Whether this process was started with SIGHUP ignored, as nohup(1) does; see proc_pid_status(5).
  private static var outlivesItsTerminal: Bool {
    // Without /proc the answer is unknown; a terminal is the usual case.
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let ignored = status.split(separator: "\n").first { $0.hasPrefix("SigIgn:") }
    guard let mask = ignored?.split(separator: "\t").last.flatMap({ UInt64($0, radix: 16) }) else { return false }
    return mask & 1 << UInt64(SIGHUP - 1) != 0
  }
}
