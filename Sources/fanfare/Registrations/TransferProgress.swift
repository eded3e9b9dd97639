import Foundation
import Roles

/// Tells whoever waits for an import or an export how far it is: on a terminal by a bar that is drawn again and again,
/// elsewhere by a line every few seconds. Not for more than one task.
final class TransferProgress {
  /// What was done, at some moment.
  struct State {
    /// Registrations so far, in this run.
    var count = 0
    /// How much of all is done, 0 to 1; nil where that is not known.
    var share: Double?
    /// How much of all was done before this run.
    var shareBefore = 0.0
    /// What else is to be said.
    var detail = ""
  }

  private let isTerminal: Bool
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var next: ContinuousClock.Instant
  private var interval: Duration { isTerminal ? .milliseconds(200) : .seconds(5) }
  private var isDrawn = false

  /// Begins now. `isTerminal` says whether standard error is one.
  init(isTerminal: Bool = Console.isErrorTerminal) {
    self.isTerminal = isTerminal
    start = clock.now
    next = start
  }

  /// Shows the state, if it is time to.
  func show(_ state: State) {
    let now = clock.now
    guard now >= next else { return }
    next = now + interval
    let text = Self.text(state, after: now - start)
    guard isTerminal else {
      // Nothing is worth saying right at the start.
      if now > start + interval { Console.error("fanfare: \(text)") }
      return
    }
    isDrawn = true
    Console.overwriteError(text)
  }

  /// Makes room for a line of another kind.
  func interrupt() {
    if isDrawn { Console.overwriteError("") }
    isDrawn = false
    next = clock.now
  }

  /// How long it has taken.
  var elapsed: Duration { clock.now - start }

  /// The state in one line: a bar, the share, the rate, and the time that is left at this rate.
  static func text(_ state: State, after elapsed: Duration) -> String {
    let seconds = elapsed / .seconds(1)
    var words: [String] = []
    if let share = state.share {
      let filled = Int((min(1, share) * 30).rounded(.down))
      words.append("[\(String(repeating: "#", count: filled))\(String(repeating: ".", count: 30 - filled))]")
      words.append("\(Int(min(1, share) * 100)) %")
    }
    words.append("\(state.count) registrations")
    words.append("\(seconds > 0 ? Int(Double(state.count) / seconds) : 0)/s")
    if let share = state.share, share > state.shareBefore, share < 1 {
      words.append("\(time(seconds * (1 - share) / (share - state.shareBefore))) left")
    }
    if !state.detail.isEmpty { words.append(state.detail) }
    return words.joined(separator: "  ")
  }

  private static func time(_ seconds: Double) -> String {
    let seconds = Int(min(seconds, 359_999).rounded(.up))
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(seconds / 3600):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
  }
}
