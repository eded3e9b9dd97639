import FanfareCore
import Testing

@testable import PushServices

@Suite struct WNSAnswerTests {
  private func outcome(
    _ status: Int, _ word: String? = nil, description: String = "", retryAfter: String? = nil, appWorks: Bool = false
  ) -> PushOutcome {
    WNSAnswer.outcome(
      status: status, fields: WNSAnswer.Fields(status: word, description: description, retryAfter: retryAfter),
      appWorks: appWorks, now: Fixtures.now)
  }

  /// Every row of Microsoft's table: status, `X-WNS-Status`, verdict, reason.
  static let rows: [(Int, String?, PushOutcome.Verdict, String)] = [
    (200, "received", .accepted, ""), (200, "dropped", .rejected, "dropped"),
    (200, "channelthrottled", .retryLater, "channelthrottled"),
    (200, "ChannelThrottled", .retryLater, "channelthrottled"),
    (200, nil, .accepted, ""), (200, "somethingnew", .accepted, ""), (400, nil, .malformed, "BadRequest"),
    (401, nil, .reauthenticate, "Unauthorized"), (404, nil, .deviceGone, "NotFound"),
    (405, nil, .malformed, "MethodNotAllowed"),
    (406, nil, .retryLater, "Throttled"), (410, nil, .deviceGone, "Gone"), (412, nil, .retryLater, "DeviceUnreachable"),
    (413, nil, .rejected, "PayloadTooLarge"), (429, nil, .retryLater, "Throttled"),
    (500, nil, .retryLater, "ServerError"),
    (502, nil, .retryLater, "ServerError"), (503, nil, .retryLater, "ServiceUnavailable"),
    (302, nil, .malformed, "Redirect"),
    (418, nil, .rejected, "UnknownReason"),
  ]

  @Test(arguments: rows) func everyStatusHasItsOutcome(
    status: Int, word: String?, verdict: PushOutcome.Verdict, reason: String
  ) {
    let outcome = outcome(status, word)
    #expect(outcome.verdict == verdict)
    #expect(outcome.reason == reason)
    #expect(outcome.status == status)
  }

  @Test func forbiddenRemovesTheChannelOnlyIfTheAppWorks() {
    #expect(outcome(403, appWorks: false) == PushOutcome(.retryLater, reason: "Forbidden", status: 403))
    #expect(outcome(403, appWorks: true) == PushOutcome(.deviceGone, reason: "ChannelForbidden", status: 403))
  }

  @Test func domainBlocked() {
    let blocked = outcome(410, description: "Domain Blocked")
    #expect(blocked.verdict == .configurationError)
    #expect(blocked.reason == "DomainBlocked")
    #expect(outcome(410, description: "The channel expired.").verdict == .deviceGone)
  }

  @Test func delays() {
    #expect(outcome(406, retryAfter: "30").retryAfter == .seconds(30))
    #expect(outcome(503, retryAfter: "Sat, 21 Nov 2026 08:00:10 GMT").retryAfter == .seconds(10))
    #expect(outcome(406).retryAfter == nil)
    #expect(outcome(412).retryAfter == .seconds(3600))
    #expect(outcome(500, retryAfter: "x").retryAfter == nil)
    #expect(outcome(404, retryAfter: "30").retryAfter == nil)
  }
}
