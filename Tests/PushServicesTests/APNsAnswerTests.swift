import FanfareCore
import Testing

@testable import PushServices

@Suite struct APNsAnswerTests {
  /// Every row of Apple's table of answers.
  static let rows: [(Int, String, PushOutcome.Verdict)] = [
    (400, "BadCollapseId", .rejected), (400, "BadDeviceToken", .deviceGone), (400, "BadExpirationDate", .malformed),
    (400, "BadMessageId", .malformed), (400, "BadPriority", .malformed), (400, "BadTopic", .configurationError),
    (400, "DeviceTokenNotForTopic", .rejected), (400, "DuplicateHeaders", .malformed), (400, "IdleTimeout", .retryHere),
    (400, "InvalidPushType", .malformed), (400, "MissingDeviceToken", .malformed),
    (400, "MissingTopic", .configurationError),
    (400, "PayloadEmpty", .rejected), (400, "TopicDisallowed", .configurationError),
    (403, "BadCertificate", .configurationError),
    (403, "BadCertificateEnvironment", .configurationError), (403, "ExpiredProviderToken", .reauthenticate),
    (403, "Forbidden", .configurationError), (403, "InvalidProviderToken", .configurationError),
    (403, "MissingProviderToken", .configurationError), (403, "UnrelatedKeyIdInToken", .retryHere),
    (403, "BadEnvironmentKeyIdInToken", .configurationError), (403, "BadEnvironmentKeyInToken", .configurationError),
    (404, "BadPath", .malformed), (405, "MethodNotAllowed", .malformed), (410, "Unregistered", .deviceGone),
    (410, "ExpiredToken", .deviceGone), (413, "PayloadTooLarge", .rejected),
    (429, "TooManyProviderTokenUpdates", .retryLater),
    (429, "TooManyRequests", .retryLater), (500, "InternalServerError", .retryLater),
    (503, "ServiceUnavailable", .retryLater),
    (503, "Shutdown", .retryLater),
  ]

  private func outcome(_ status: Int, _ body: String, retryAfter: String? = nil) -> PushOutcome {
    APNsAnswer(status: status, body: Array(body.utf8), retryAfter: retryAfter, now: Fixtures.now).outcome
  }

  @Test(arguments: rows) func everyReasonHasItsVerdict(status: Int, reason: String, verdict: PushOutcome.Verdict) {
    #expect(outcome(status, "{\"reason\":\"\(reason)\"}") == PushOutcome(verdict, reason: reason, status: status))
  }

  @Test func everyReasonIsInTheTable() {
    #expect(Set(Self.rows.map(\.1)) == Set(APNsReason.allCases.map(\.rawValue)))
  }

  @Test func accepted() {
    #expect(outcome(200, "") == PushOutcome(.accepted, status: 200))
  }

  @Test func goneTokenCarriesItsTimestamp() {
    let gone = outcome(410, #"{"reason":"Unregistered","timestamp":1700000000123}"#)
    #expect(gone.since == UnixTime(milliseconds: 1_700_000_000_123))
    #expect(outcome(410, #"{"timestamp":"x","reason":"ExpiredToken"}"#).since == nil)
    #expect(
      outcome(410, #"{"timestamp":1,"reason":"ExpiredToken","new":{"a":[1]}}"#).since == UnixTime(milliseconds: 1))
    #expect(outcome(400, #"{"reason":"BadCollapseId","timestamp":1}"#).since == nil)
  }

  @Test func retryAfterIsHonoured() {
    #expect(outcome(429, #"{"reason":"TooManyRequests"}"#, retryAfter: "7").retryAfter == .seconds(7))
    let date = "Sat, 21 Nov 2026 08:01:00 GMT"
    #expect(outcome(503, #"{"reason":"Shutdown"}"#, retryAfter: date).retryAfter == .seconds(60))
    #expect(outcome(400, #"{"reason":"BadTopic"}"#, retryAfter: "7").retryAfter == nil)
  }

  /// A body that is not the documented JSON never removes a device, and never becomes a metric's label.
  @Test(arguments: [
    "", "<html><body>502</body></html>", "{\"reason\":", "{\"reason\":\"NewReason\"}", "{\"reason\":7}", "[]", "null",
    "{\"Reason\":\"Unregistered\"}", String(repeating: "x", count: 100_000), "\u{0}\u{1}",
  ])
  func garbledBodies(body: String) {
    for (status, verdict) in [
      (400, PushOutcome.Verdict.rejected), (403, .rejected), (410, .rejected), (418, .rejected), (429, .retryLater),
      (500, .retryLater), (503, .retryLater), (599, .retryLater),
    ] {
      #expect(outcome(status, body) == PushOutcome(verdict, reason: "UnknownReason", status: status))
    }
  }

  @Test func bodyThatIsNotUTF8IsUnknownReason() {
    let answer = APNsAnswer(status: 410, body: [0x7B, 0xFF, 0xFE], retryAfter: nil, now: Fixtures.now)
    #expect(answer.outcome.verdict == .rejected)
  }
}
