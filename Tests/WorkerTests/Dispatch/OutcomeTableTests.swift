import FanfareCore
import Foundation
import Testing

@testable import Worker

/// What follows from each outcome stands in three places: the policy, the table by which simulations count, and the
/// article for readers.
struct OutcomeTableTests {
  private static let table = Set(WorkerStep.outcomes.map(\.step))

  @Test func tableHasAllThatThePolicyDecides() {
    let histories = [
      RetryPolicy.History(attempts: 1), RetryPolicy.History(attempts: 4, quickRetries: 3, hasReauthenticated: true),
      RetryPolicy.History(attempts: 8, quickRetries: 3, waits: 3, hasReauthenticated: true, contradictions: 3),
    ]
    var steps: Set<WorkerStep> = []
    for verdict in PushOutcome.Verdict.allCases {
      for var history in histories {
        for (wasUnanswered, isAlone) in [(false, false), (true, false), (false, true)] {
          history.wasUnanswered = wasUnanswered || verdict == .unknown
          for remaining in [Duration.milliseconds(1), .seconds(3600)] {
            let decision = RetryPolicy().decide(
              PushOutcome(verdict), on: .apns, history: history, remaining: remaining, jitter: 0.5, isAlone: isAlone)
            steps.insert(.outcome(verdict, decision.action))
          }
        }
      }
    }
    #expect(steps == Self.table)
  }

  /// The article's table has a row for some verdicts and what follows; below it stands how a push ends that would have
  /// to wait.
  @Test func articleTellsTheSame() throws {
    let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { path, _ in path.deletingLastPathComponent() }
    let article = try String(
      contentsOf: root.appending(path: "Sources/fanfare/Documentation.docc/Design.md"), encoding: .utf8)
    let lines = article.split(separator: "\n").drop { !$0.contains("| verdict | condition | what follows |") }
    let actions: [(words: String, action: RetryPolicy.Action)] = [
      ("delivered", .finish(.delivered)), ("rejected", .finish(.rejected)), ("device gone", .finish(.deviceGone)),
      ("again at once", .again), ("waits", .wait), ("unconfirmed", .finish(.unconfirmed)),
      ("failed", .finish(.failed)), ("the service is stopped", .hold),
    ]
    var steps: Set<WorkerStep> = []
    var verdicts: [PushOutcome.Verdict] = []
    for line in lines.dropFirst(2).prefix(while: { $0.hasPrefix("|") }) {
      let cells = line.dropFirst().split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      let action = try #require(actions.first { cells[2].hasPrefix($0.words) }, "\(line)").action
      if cells[0] != "the same" {
        verdicts = try cells[0].split(separator: ", ").map { name in
          try #require(PushOutcome.Verdict(rawValue: name.trimmingCharacters(in: ["`"])), "\(line)")
        }
      }
      for verdict in verdicts {
        steps.insert(.outcome(verdict, action))
        guard action == .wait else { continue }
        let ends: [DeviceResult.Outcome] = verdict == .unknown ? [.unconfirmed] : [.failed, .unconfirmed]
        for end in ends + [.expired] { steps.insert(.outcome(verdict, .finish(end))) }
      }
    }
    #expect(steps == Self.table)
  }
}
