import ArgumentParser
import Foundation
import UnixSignals

/// Runs `body`, until SIGINT, SIGTERM or SIGHUP (see `UnixSignal.ending`): these cancel it, so that on its way out it
/// ends the processes that it has started and removes the directories that it has made. Once it has returned,
/// `ExitCode` is thrown then, with the status that a shell reports of a process that a signal has ended. Another
/// signal, a second later or more, ends this process at once.
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
      // Something takes no notice of being cancelled, and somebody has lost patience. At once it is the same signal
      // again: timeout(1), for one, sends it to the process and to its group.
      if ContinuousClock.now - first.at >= .seconds(1) { exit(128 + signal.rawValue) }
    }
    return first?.signal
  }
  let result = await work.result
  listening.cancel()
  // What went wrong after a signal did so because of it.
  if let signal = await listening.value { throw ExitCode(128 + signal.rawValue) }
  try result.get()
}
