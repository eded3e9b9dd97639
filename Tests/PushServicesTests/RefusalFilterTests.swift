import FanfareCore
import Testing

@testable import PushServices

struct RefusalFilterTests {
  private let now = UnixTime(milliseconds: 1_800_000_000_000)

  @Test func singleRefusalIsNotBelievedWhileOthersAreAccepted() {
    let filter = RefusalFilter()
    #expect(filter.refused(now: now), "nothing was accepted before")
    for _ in 0..<100 {
      filter.accepted(now: now)
      #expect(!filter.refused(now: now))
      #expect(!filter.refused(now: now))
    }
    #expect(!filter.refused(now: now), "the third of the same moment")
    #expect(filter.refused(now: now + RefusalFilter.patience))
    filter.accepted(now: now)
    #expect(filter.refused(now: now + RefusalFilter.memory))
    filter.accepted(now: now)
    filter.reset()
    #expect(filter.refused(now: now))
  }

  @Test func everyVerdictHasAScope() {
    let rows: [(PushOutcome, PushOutcome.Scope?)] = [
      (PushOutcome(.accepted, status: 200), nil), (.payloadTooLarge, .message), (.badChannel, .device),
      (PushOutcome(.malformed, status: 400), .message), (PushOutcome(.deviceGone, status: 410), .device),
      (PushOutcome(.reauthenticate, status: 401), .credential), (PushOutcome(.unknown), .service),
      (PushOutcome(.configurationError, status: 403), .credential), (.hostUnreachable, .device),
      (PushOutcome(.retryLater, reason: "TooManyRequests", status: 429), .device), (.notSent, .service),
      (PushOutcome(.retryLater, status: 503), .service), (.tokenUnavailable, .service), (.queueFull, .worker),
      (.closed, .worker), (.expired, .worker), (PushOutcome(.retryHere, reason: "GoAway"), .service),
    ]
    for (outcome, scope) in rows {
      #expect(outcome.scope == scope, "\(outcome.verdict) \(outcome.reason)")
      #expect(outcome.isOutage == (scope == .service))
    }
    #expect(!PushOutcome.badChannel.provesCredential)
    #expect(PushOutcome(.deviceGone, status: 410).provesCredential)
  }
}
