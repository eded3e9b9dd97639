import CPerfCounter
import Foundation

/// Counts the instructions of a process in user mode: unlike its CPU time, they do not depend on what else the machine
/// does.
final class InstructionCounter: Sendable {
  /// Of this process.
  static let own = InstructionCounter(of: getpid())

  /// One for each thread; the threads that it starts are counted with it.
  private let counters: [Int32]

  /// Counts the threads that the process has now, and those that they will start.
  init(of id: Int32) {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/task")) ?? []  // It has ended.
    counters = threads.compactMap { Int32($0) }.map { fanfare_count_instructions($0) }.filter { $0 >= 0 }
  }

  deinit { for counter in counters { close(counter) } }

  /// The instructions so far; nil where they cannot be counted, as in most virtual machines, and if
  /// `kernel.perf_event_paranoid` forbids it.
  var count: Int? {
    let counts = counters.map { fanfare_counted_instructions($0) }
    return counts.isEmpty || counts.contains(-1) ? nil : counts.reduce(0) { $0 + Int($1) }
  }
}
