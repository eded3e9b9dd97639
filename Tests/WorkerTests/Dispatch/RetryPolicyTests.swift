import FanfareCore
import Testing

@testable import Worker

struct RetryPolicyTests {
  private typealias History = RetryPolicy.History

  private func decide(
    _ outcome: PushOutcome, on platform: Platform = .fcm, _ history: RetryPolicy.History = .init(attempts: 1),
    remaining: Duration = .seconds(86_400), jitter: Double = 0, policy: RetryPolicy = .init()
  ) -> RetryPolicy.Decision {
    policy.decide(outcome, on: platform, history: history, remaining: remaining, jitter: jitter)
  }

  /// One row per verdict, first time round.
  @Test(arguments: PushOutcome.Verdict.allCases) func everyVerdictHasItsAction(verdict: PushOutcome.Verdict) {
    let expected: RetryPolicy.Decision =
      switch verdict {
      case .accepted: .finish(.delivered)
      case .rejected: .finish(.rejected)
      case .deviceGone: .finish(.deviceGone)
      case .retryHere: .again
      case .retryLater: .wait(.milliseconds(2500))
      case .reauthenticate: .again
      case .configurationError: .hold
      case .malformed: .finish(.rejected)
      case .unknown: .wait(.seconds(1))
      }
    #expect(decide(PushOutcome(verdict)) == expected)
  }

  @Test func delayAskedByServiceIsNeverShortened() {
    let outcome = PushOutcome(.retryLater, retryAfter: .seconds(120))
    #expect(decide(outcome) == .wait(.seconds(120)))
    #expect(decide(outcome, jitter: 0.999) > .wait(.seconds(120)))
    #expect(decide(PushOutcome(.retryLater, retryAfter: .seconds(3601))) == .finish(.failed))
  }

  @Test func repeatedDelayAskedByServiceGrows() {
    let rows = [
      (503, 0, [1, 2, 4, 8, 16, 32, 60]), (503, 30, [30, 30, 30, 30, 30, 32, 60]),
      (429, 60, [60, 120, 240, 480, 960, 1920, 2400]), (503, 1200, Array(repeating: 1200, count: 7)),
    ]
    for (status, asked, expected) in rows {
      let outcome = PushOutcome(.retryLater, status: status, retryAfter: .seconds(asked))
      let found = (0...6).map { decide(outcome, History(attempts: $0 + 1, waits: $0)) }
      #expect(found == expected.map { .wait(.seconds($0)) })
    }
  }

  @Test func sendIsNotGivenUpForLongerDelayThanAsked() {
    let outcome = PushOutcome(.retryLater, status: 503, retryAfter: .seconds(10))
    let history = RetryPolicy.History(attempts: 6, waits: 5)
    #expect(decide(outcome, history, remaining: .seconds(30)) == .wait(.seconds(10)))
    #expect(decide(outcome, history, remaining: .seconds(10)) == .finish(.expired))
  }

  @Test func delayAskedByServiceStaysWithinLimitDespiteJitter() {
    let unreachable = PushOutcome(.retryLater, reason: "DeviceUnreachable", status: 412, retryAfter: .seconds(3600))
    for jitter in [0, 0.5, 0.999] { #expect(decide(unreachable, on: .wns, jitter: jitter) == .wait(.seconds(3600))) }
  }

  @Test func millisecondsSaturate() {
    #expect(Duration(secondsComponent: .max, attosecondsComponent: 0).milliseconds == .max)
    #expect(Duration(secondsComponent: .max / 1000, attosecondsComponent: 999_000_000_000_000_000).milliseconds == .max)
    #expect(
      Duration(secondsComponent: .min / 1000, attosecondsComponent: -999_000_000_000_000_000).milliseconds == .min)
    #expect(Duration.milliseconds(-1500).milliseconds == -1500)
  }

  @Test func unreachableServiceIsRetriedSoonOnEveryPlatform() {
    for platform in Platform.allCases {
      #expect(
        decide(PushOutcome(.retryLater, reason: "NotSent"), on: platform, History(attempts: 1), jitter: 1)
          == .wait(.seconds(5)))
      #expect(
        decide(PushOutcome(.retryLater, reason: "NotSent"), on: platform, History(attempts: 7, waits: 6), jitter: 1)
          == .wait(.seconds(320)))
    }
  }

  @Test func delaysGrowToLimitWithJitter() {
    let outcome = PushOutcome(.retryLater, status: 503)
    #expect(decide(outcome, on: .apns, History(attempts: 1, waits: 0), jitter: 1) == .wait(.seconds(30)))
    #expect(decide(outcome, on: .apns, History(attempts: 2, waits: 1), jitter: 1) == .wait(.seconds(150)))
    #expect(decide(outcome, on: .apns, History(attempts: 3, waits: 2), jitter: 1) == .wait(.seconds(750)))
    #expect(decide(outcome, on: .apns, History(attempts: 4, waits: 3), jitter: 1) == .wait(.seconds(900)))
    #expect(decide(outcome, on: .wns, History(attempts: 1, waits: 0), jitter: 0) == .wait(.seconds(300)))
  }

  /// Google's rules for senders: a minute at least where no time is given, doubling, and an end after an hour.
  @Test func fcmQuotaIsWaitedForWithGrowingDelay() {
    let outcome = PushOutcome(.retryLater, reason: "QUOTA_EXCEEDED", status: 429)
    var age = Duration.zero
    for (waits, seconds) in [60, 120, 240, 480, 960, 1920].enumerated() {
      let history = History(attempts: waits + 1, waits: waits, age: age)
      #expect(decide(outcome, history) == .wait(.seconds(seconds)))
      #expect(decide(outcome, history, jitter: 1) == .wait(.milliseconds(seconds * 1100)))
      age += .seconds(seconds)
    }
    #expect(decide(outcome, History(attempts: 7, waits: 6, age: age)) == .finish(.failed))
    #expect(
      decide(PushOutcome(.retryLater, status: 429, retryAfter: .seconds(5)), History(attempts: 1)) == .wait(.seconds(5))
    )
  }

  @Test func quickRetriesAreBounded() {
    #expect(decide(PushOutcome(.retryHere), History(attempts: 3, quickRetries: 2)) == .again)
    #expect(decide(PushOutcome(.retryHere, status: 503), History(attempts: 4, quickRetries: 3)) == .wait(.seconds(5)))
  }

  @Test func secondRefusalOfCredentialStopsSender() {
    #expect(decide(PushOutcome(.reauthenticate), History(attempts: 2, hasReauthenticated: true)) == .hold)
  }

  @Test func pushRefusedWhileOthersPassFailsHoweverLongItWasHeld() {
    for outcome in [PushOutcome(.configurationError), PushOutcome(.reauthenticate)] {
      func history(_ contradictions: Int, wasUnanswered: Bool = false) -> RetryPolicy.History {
        History(attempts: 1000, hasReauthenticated: true, wasUnanswered: wasUnanswered, contradictions: contradictions)
      }
      #expect(decide(outcome, history(0)) == .hold)
      #expect(decide(outcome, history(2)) == .hold)
      #expect(decide(outcome, history(3)) == .finish(.failed))
      #expect(decide(outcome, history(3, wasUnanswered: true)) == .finish(.unconfirmed))
    }
    #expect(
      decide(PushOutcome(.retryLater, status: 503), History(attempts: 1007, heldAttempts: 1000)) == .wait(.seconds(5)))
    #expect(decide(PushOutcome(.retryLater), History(attempts: 1008, heldAttempts: 1000)) == .finish(.failed))
  }

  @Test func unansweredPushIsUnconfirmedRefusedPushIsFailed() {
    #expect(decide(PushOutcome(.unknown), History(attempts: 4, waits: 3, wasUnanswered: true)) == .finish(.unconfirmed))
    #expect(decide(PushOutcome(.retryLater), History(attempts: 8, waits: 7)) == .finish(.failed))
    #expect(
      decide(PushOutcome(.retryLater), History(attempts: 8, waits: 7, wasUnanswered: true)) == .finish(.unconfirmed))
    #expect(decide(PushOutcome(.retryLater), History(attempts: 2, age: .seconds(3601))) == .finish(.failed))
  }

  @Test func noDeviceWaitsBeyondExpiry() {
    #expect(decide(PushOutcome(.retryLater, retryAfter: .seconds(60)), remaining: .seconds(60)) == .finish(.expired))
    #expect(decide(PushOutcome(.retryLater, retryAfter: .seconds(60)), remaining: .seconds(61)) == .wait(.seconds(60)))
    #expect(decide(PushOutcome(.unknown), remaining: .milliseconds(500)) == .finish(.expired))
  }
}

private func > (left: RetryPolicy.Decision, right: RetryPolicy.Decision) -> Bool {
  if case (.wait(let left), .wait(let right)) = (left, right) { left > right } else { false }
}
