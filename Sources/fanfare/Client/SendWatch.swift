import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// Follows a send until it has ended: a bar on a terminal, otherwise lines.
struct SendWatch {
  private static let interval = Duration.seconds(1)
  /// The time for which the history may not know a new send.
  private static let patience = Duration.seconds(60)

  let client: APIClient
  let id: String
  /// Whether to print the API's answers, one a line.
  let isJSON: Bool
  /// Nil for no limit.
  let timeout: Duration?

  /// Returns the last state of the send. Throws `ExitCode` when the time limit has passed.
  func run() async throws -> SendAnswer {
    let (clock, start) = (ContinuousClock(), ContinuousClock.now)
    var (last, rate, outage) = ("", SendRate(), Outage())
    while true {
      var known: (answer: SendAnswer, json: Data)?
      do {
        known = try await client.send(id)
        outage = Outage()
      } catch {
        guard outage.bears(error, at: clock.now - start) else { throw error }
      }
      let elapsed = clock.now - start
      if let (answer, json) = known {
        rate.note(answer.devicesDone, at: elapsed)
        let text = Self.text(answer, rate: rate.perSecond)
        show(isJSON ? String(decoding: json, as: UTF8.self) : text, differsFrom: &last)
        if answer.hasEnded {
          if Console.isTerminal, !isJSON { Console.print() }
          return answer
        }
      } else if !outage.lasts, elapsed > Self.patience {
        throw ValidationError("there is no send \(id), or you may not see it")
      }
      if let timeout, elapsed >= timeout {
        if Console.isTerminal, !isJSON { Console.print() }
        Console.error("fanfare: \(id) has not ended; `fanfare broadcast watch \(id)` follows it further")
        throw ExitCode.failure
      }
      try await Task.sleep(for: Self.interval)
    }
  }

  private func show(_ text: String, differsFrom last: inout String) {
    guard text != last else { return }
    last = text
    if isJSON {
      Console.print(jsonText: text)
    } else if Console.isTerminal {
      Console.overwrite(Printable.line(text))
    } else {
      Console.print(text)
    }
  }

  /// The state as one line: bar, outcomes, rate and the time left.
  static func text(_ answer: SendAnswer, rate: Double?) -> String {
    var words = [answer.state]
    if let broadcast = answer.broadcast {
      let share = broadcast.pages == 0 ? 0 : Double(broadcast.finishedPages) / Double(broadcast.pages)
      let filled = Int(clamping: min(1, share) * 30)
      let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
      words = ["[\(bar)]", "\(Int(clamping: share * 100)) %", answer.hasEnded ? answer.state : broadcast.course]
      if broadcast.course != "running", broadcast.cause != "caller" { words.append("(\(broadcast.cause))") }
    }
    if !answer.outcomes.isEmpty { words.append(answer.outcomes) }
    if !answer.hasEnded {
      if let rate, rate > 0 { words.append("\(Int(clamping: rate.rounded()))/s") }
      if let seconds = answer.broadcast?.remainingSeconds { words.append("\(seconds) s left") }
      if answer.state == "scheduled", let sendAt = answer.sendAt { words.append("for \(sendAt)") }
    }
    return words.joined(separator: "  ")
  }
}

extension SendWatch {
  /// A time without answers of the HTTP API, such as a restart of the front end.
  struct Outage {
    /// The longest that is borne.
    static let limit = Duration.seconds(30)
    private var since: Duration?

    /// Whether the last request failed.
    var lasts: Bool { since != nil }

    /// Notes a failed request. Returns whether to ask again: there was no answer, or none of a front end, not too long.
    mutating func bears(_ error: any Error, at elapsed: Duration) -> Bool {
      guard error is APIUnreachable || ((error as? APIRefusal)?.status ?? 0) >= 500 else { return false }
      let start = since ?? elapsed
      since = start
      return elapsed - start < Self.limit
    }
  }
}

/// The devices per second over the last reports.
struct SendRate {
  private static let span = Duration.seconds(5)
  private var reports: [(count: Int, at: Duration)] = []

  mutating func note(_ count: Int, at elapsed: Duration) {
    reports.append((count, elapsed))
    while reports.count > 2, reports[1].at < elapsed - Self.span { reports.removeFirst() }
  }

  /// Nil before there are two reports.
  var perSecond: Double? {
    guard let first = reports.first, let last = reports.last, last.at > first.at else { return nil }
    return Double(last.count - first.count) / ((last.at - first.at) / .seconds(1))
  }
}
