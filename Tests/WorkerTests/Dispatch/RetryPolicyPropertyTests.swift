import FanfareCore
import Testing

@testable import Worker

/// What holds of the policy whatever comes: random lives of pushes, on a clock that only the test moves.
struct RetryPolicyPropertyTests {
  private typealias History = RetryPolicy.History

  /// One push from its first attempt to its end, with a history kept as the dispatcher keeps it.
  @Test(arguments: UInt64(1)...8) func pushEndsAfterItsAttemptsAndInTime(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<500 {
      let policy = Self.policy(&generator)
      let life = Duration.milliseconds(Int64.random(in: 1...200_000, using: &generator))
      let platform = Platform.allCases.randomElement(using: &generator) ?? .apns
      var now = Duration.zero
      var history = History()
      var end: DeviceResult.Outcome?
      // Enough rounds: attempts that count are bounded, and this push is never held.
      for _ in 0...policy.maximumAttempts {
        history.attempts += 1
        history.age = now
        let outcome = Self.outcome(
          from: [.retryHere, .retryLater, .unknown, .retryLater, .retryHere, .accepted], &generator)
        if outcome.verdict == .unknown { history.wasUnanswered = true }
        let decision = policy.decide(
          outcome, on: platform, history: history, remaining: life - now,
          jitter: Double.random(in: 0..<1, using: &generator))
        switch decision {
        case .finish(let result): end = result
        case .again:
          history.quickRetries += 1
          #expect(outcome.verdict == .retryHere && history.quickRetries <= policy.quickRetries)
        case .wait(let delay):
          history.waits += 1
          #expect(delay < life - now, "no push waits past the end of the send's life")
          #expect(delay <= policy.maximumDelay && delay >= .zero && history.age <= policy.maximumAge)
          if outcome.verdict != .unknown, let least = outcome.retryAfter {
            #expect(delay >= least, "the service's word is obeyed")
          }
          now += delay
        case .hold: Issue.record("nothing here is the operator's mistake")
        }
        if end != nil { break }
      }
      #expect(end != nil)
      #expect(history.attempts <= policy.maximumAttempts)
      if end == .failed { #expect(!history.wasUnanswered, "the device may have it") }
    }
  }

  /// Any outcome after any history, however unlikely.
  @Test(arguments: UInt64(1)...4) func verdictMeansTheSameWhateverCameBefore(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<5000 {
      let policy = Self.policy(&generator)
      let history = Self.history(&generator)
      let outcome = Self.outcome(from: PushOutcome.Verdict.allCases, &generator)
      let remaining = Duration.milliseconds(Int64.random(in: -1000...2_000_000, using: &generator))
      let decision = policy.decide(
        outcome, on: Platform.allCases.randomElement(using: &generator) ?? .apns, history: history,
        remaining: remaining,
        jitter: Double.random(in: 0..<1, using: &generator))
      // From the surest to the least sure: only an answer of the service is a final result.
      let final: DeviceResult.Outcome? =
        switch outcome.verdict {
        case .accepted: .delivered
        case .rejected, .malformed: .rejected
        case .deviceGone: .deviceGone
        default: nil
        }
      if let final {
        #expect(decision == .finish(final))
        continue
      }
      switch decision {
      case .finish(let end):
        #expect([.failed, .unconfirmed, .expired].contains(end))
        if end == .expired { #expect(outcome.verdict != .configurationError) }
        if end == .failed { #expect(!history.wasUnanswered && outcome.verdict != .unknown) }
      case .again: #expect([.retryHere, .reauthenticate].contains(outcome.verdict))
      case .hold:
        #expect([.configurationError, .reauthenticate].contains(outcome.verdict))
        #expect(history.contradictions < policy.maximumContradictions)
      case .wait(let delay):
        #expect([.retryHere, .retryLater, .unknown].contains(outcome.verdict))
        #expect(delay < remaining && delay <= policy.maximumDelay)
        #expect(history.attempts - history.heldAttempts < policy.maximumAttempts)
      }
    }
  }

  private static func policy(_ generator: inout SplitMix64) -> RetryPolicy {
    var policy = RetryPolicy()
    policy.quickRetries = Int.random(in: 0...4, using: &generator)
    policy.maximumAttempts = Int.random(in: 1...10, using: &generator)
    policy.maximumContradictions = Int.random(in: 0...4, using: &generator)
    policy.unansweredRetries = Int.random(in: 0...5, using: &generator)
    policy.maximumDelay = .milliseconds(Int64.random(in: 100...4_000_000, using: &generator))
    policy.maximumAge = .milliseconds(Int64.random(in: 100...4_000_000, using: &generator))
    return policy
  }

  private static func outcome(from verdicts: [PushOutcome.Verdict], _ generator: inout SplitMix64) -> PushOutcome {
    let asks = Bool.random(using: &generator)
    return PushOutcome(
      verdicts.randomElement(using: &generator) ?? .unknown,
      retryAfter: asks ? .milliseconds(Int64.random(in: 0...100_000, using: &generator)) : nil)
  }

  private static func history(_ generator: inout SplitMix64) -> RetryPolicy.History {
    let attempts = Int.random(in: 1...20, using: &generator)
    return History(
      attempts: attempts, quickRetries: Int.random(in: 0...6, using: &generator),
      waits: Int.random(in: 0...100, using: &generator), hasReauthenticated: Bool.random(using: &generator),
      wasUnanswered: Bool.random(using: &generator), heldAttempts: Int.random(in: 0...attempts, using: &generator),
      contradictions: Int.random(in: 0...6, using: &generator),
      age: .milliseconds(Int64.random(in: 0...8_000_000, using: &generator)))
  }
}
