import FanfareCore
import Foundation
import Roles

/// Shows the progress of an import or export: a bar on a terminal, elsewhere a line every few seconds.
///
/// Only one task may use it.
final class TransferProgress {
  /// The progress at some moment.
  struct State {
    /// Registrations so far, in this run.
    var count = 0
    /// The completed share, 0 to 1; nil if unknown.
    var share: Double?
    /// The share completed before this run.
    var shareBefore = 0.0
    /// Further text.
    var detail = ""
  }

  private let isTerminal: Bool
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var next: ContinuousClock.Instant
  private var interval: Duration { isTerminal ? .milliseconds(200) : .seconds(5) }
  private var isDrawn = false

  /// Starts the clock. `isTerminal`: whether standard error is a terminal.
  init(isTerminal: Bool = Console.isErrorTerminal) {
    self.isTerminal = isTerminal
    start = clock.now
    next = start
  }

  /// Shows the state if the interval has passed.
  func show(_ state: State) {
    let now = clock.now
    guard now >= next else { return }
    next = now + interval
    let text = Self.text(state, after: now - start)
    guard isTerminal else {
      // The first report comes after one interval.
      if now > start + interval { Console.error("fanfare: \(text)") }
      return
    }
    isDrawn = true
    Console.overwriteError(text)
  }

  /// Clears the bar before other output.
  func interrupt() {
    if isDrawn { Console.overwriteError("") }
    isDrawn = false
    next = clock.now
  }

  /// The time since the start.
  var elapsed: Duration { clock.now - start }

  /// The state as one line: bar, share, rate, and the time left at this rate.
  static func text(_ state: State, after elapsed: Duration) -> String {
    let seconds = elapsed / .seconds(1)
    var words: [String] = []
    if let share = state.share {
      let filled = Int(clamping: min(1, share) * 30)
      words.append("[\(String(repeating: "#", count: filled))\(String(repeating: ".", count: 30 - filled))]")
      words.append("\(Int(clamping: min(1, share) * 100)) %")
    }
    words.append("\(state.count) registrations")
    words.append("\(seconds > 0 ? Int(clamping: Double(state.count) / seconds) : 0)/s")
    if let share = state.share, share > state.shareBefore, share < 1 {
      words.append("\(time(seconds * (1 - share) / (share - state.shareBefore))) left")
    }
    if !state.detail.isEmpty { words.append(state.detail) }
    return words.joined(separator: "  ")
  }

  private static func time(_ seconds: Double) -> String {
    let seconds = Int(clamping: min(seconds, 359_999).rounded(.up))
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(seconds / 3600):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
  }
}
