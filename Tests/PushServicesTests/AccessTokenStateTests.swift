import FanfareCore
import Testing

@testable import PushServices

@Suite final class AccessTokenStateTests {
  private var state = AccessTokenState()
  private var time = Fixtures.now

  private func grant(_ value: String = "t", seconds: Int64 = 3600) {
    state.fetched(.granted(value, lifetime: .seconds(seconds)), now: time)
  }

  /// The result for a push now: a token, `wait`, or the reason of its refusal; and whether a fetch was requested.
  private func use() -> (String, Bool) {
    let (use, startsFetch) = state.use(now: time)
    switch use {
    case .send(let token): return (token.value, startsFetch)
    case .wait: return ("wait", startsFetch)
    case .refuse(let outcome): return ("\(outcome.verdict) \(outcome.reason)", startsFetch)
    }
  }

  private func refused(_ generation: Int, _ reason: String = "x") -> (PushOutcome.Verdict, Bool) {
    state.refused(generation: generation, reason: reason, now: time)
  }

  @Test func manyWaitersShareOneFetch() {
    #expect(use() == ("wait", true))
    #expect(use() == ("wait", false))
    grant()
    #expect(use() == ("t", false))
  }

  @Test func tokenIsRenewedFiveMinutesBeforeItExpires() {
    _ = use()
    grant()
    time = time + .seconds(3600 - 301)
    #expect(use() == ("t", false))
    time = time + .seconds(1)
    #expect(use() == ("t", true))
    #expect(use() == ("t", false))
    grant("u")
    #expect(use() == ("u", false))
  }

  @Test func shortLivedTokenIsNotRenewedAllTheTime() {
    _ = use()
    grant(seconds: 60)
    #expect(use() == ("t", false))
    time = time + .seconds(48)
    #expect(use() == ("t", true))
  }

  @Test func failedRenewalKeepsTheOldTokenUntilItExpires() {
    _ = use()
    grant()
    time = time + .seconds(3400)
    #expect(use() == ("t", true))
    state.fetched(.unavailable(status: 503, retryAfter: nil), now: time)
    #expect(use() == ("t", false))
    time = time + .seconds(1)
    #expect(use() == ("t", true))
    state.fetched(.refused(reason: "invalid_grant", status: 400), now: time)
    #expect(use() == ("t", false))
    time = time + .seconds(3600 - 3401)
    #expect(use() == ("wait", true))
    state.fetched(.refused(reason: "invalid_grant", status: 400), now: time)
    #expect(use() == ("configurationError invalid_grant", false))
  }

  @Test func backoffGrowsAndEnds() {
    _ = use()
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
      state.fetched(.unavailable(status: 0, retryAfter: nil), now: time)
      time = time + .milliseconds(Int64(pause) * 1000 - 1)
      #expect(use() == ("retryLater TokenUnavailable", false))
      time = time + .milliseconds(1)
      #expect(use() == ("wait", true))
    }
  }

  /// It counts as a missing connection: an outage, which lasts longer than the pause before the next fetch.
  @Test(arguments: [0, 200, 408, 429, 503]) func tokenEndpointFailureIsReportedAsTokenUnavailable(status: Int) {
    _ = use()
    state.fetched(.unavailable(status: status, retryAfter: .seconds(30)), now: time)
    guard case .refuse(let outcome) = state.use(now: time).0 else {
      Issue.record("there is no token to send with")
      return
    }
    #expect(outcome == PushOutcome(.retryLater, reason: "TokenUnavailable", status: 0, retryAfter: nil))
  }

  @Test func refusedTokenIsReplacedOnce() {
    _ = use()
    grant("a")
    state.worked(generation: 1)
    time = time + .seconds(60)
    #expect(refused(1) == (.reauthenticate, true))
    // Further refusals of the same token count once.
    #expect(refused(1) == (.reauthenticate, false))
    grant("b")
    #expect(refused(1) == (.reauthenticate, false))
    #expect(refused(2, "UNAUTHENTICATED") == (.configurationError, false))
    #expect(use() == ("configurationError UNAUTHENTICATED", false))
    // The operator may have fixed it meanwhile.
    time = time + .seconds(60)
    #expect(use() == ("wait", true))
    grant("c")
    state.worked(generation: 3)
    #expect(use() == ("c", false))
    #expect(state.hasWorked(generation: 3))
    #expect(!state.hasWorked(generation: 2))
  }

  @Test func workingYoungTokenSurvivesOneRefusal() {
    _ = use()
    grant("a")
    state.worked(generation: 1)
    #expect(refused(1) == (.reauthenticate, false))
    #expect(use() == ("a", false))
  }

  @Test func refusedTokenThatWorkedIsUsedAgainWhileNoneCanBeFetched() {
    _ = use()
    grant("a")
    state.worked(generation: 1)
    time = time + .seconds(60)
    #expect(refused(1) == (.reauthenticate, true))
    state.fetched(.unavailable(status: 503, retryAfter: nil), now: time)
    #expect(use() == ("a", false))
    // Refusals of the first batch arrive late.
    #expect(refused(1) == (.reauthenticate, false))
    #expect(use() == ("a", false))
    state.worked(generation: 2)
    // A lasting refusal does not make fetches more frequent.
    #expect(refused(2) == (.reauthenticate, true))
    state.fetched(.unavailable(status: 503, retryAfter: nil), now: time)
    #expect(refused(3) == (.reauthenticate, false))
    #expect(use() == ("retryLater TokenUnavailable", false))
    time = time + .seconds(2)
    #expect(use() == ("wait", true))
    grant("b")
    #expect(use() == ("b", false))
    #expect(refused(4, "UNAUTHENTICATED") == (.configurationError, false))
  }

  @Test func refusedTokenIsNotUsedAgainOnceTheCredentialIsRefusedOrReplaced() {
    for isReplaced in [false, true] {
      state = AccessTokenState()
      _ = use()
      grant("a")
      state.worked(generation: 1)
      time = time + .seconds(60)
      #expect(refused(1) == (.reauthenticate, true))
      if isReplaced {
        _ = state.credentialReplaced(now: time)
      } else {
        state.fetched(.refused(reason: "invalid_grant", status: 400), now: time)
        time = time + .seconds(60)
        #expect(use() == ("wait", true))
      }
      state.fetched(.unavailable(status: 503, retryAfter: nil), now: time)
      #expect(use().0 != "a")
    }
  }

  @Test func newCredentialIsUsedAtOnceAlthoughTheOldOneGotAToken() {
    #expect(use() == ("wait", true))
    _ = state.credentialReplaced(now: time)
    grant("old")
    #expect(use() == ("old", true))
    #expect(use() == ("old", false))
    // And stays in use if that fails.
    state.fetched(.unavailable(status: 503, retryAfter: nil), now: time)
    #expect(use() == ("old", false))
    time = time + .seconds(1)
    #expect(use() == ("old", true))
    grant("new")
    #expect(use() == ("new", false))
  }

  @Test func newCredentialIsTriedAtOnceAlthoughTheOldOneWasRefused() {
    _ = use()
    state.fetched(.refused(reason: "invalid_grant", status: 400), now: time)
    #expect(use() == ("configurationError invalid_grant", false))
    let startsFetch = state.credentialReplaced(now: time)
    #expect(startsFetch)
    #expect(use() == ("wait", false))
    grant()
    #expect(use() == ("t", false))
  }

  @Test func lateRefusalOfTheOldCredentialIsIgnored() {
    #expect(use() == ("wait", true))
    let startsAnother = state.credentialReplaced(now: time)
    #expect(!startsAnother)
    state.fetched(.refused(reason: "invalid_grant", status: 400), now: time)
    #expect(use() == ("wait", true))
    state.fetched(.refused(reason: "invalid_grant", status: 400), now: time)
    #expect(use() == ("configurationError invalid_grant", false))
  }
}
