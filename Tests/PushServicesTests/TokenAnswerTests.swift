import FanfareCore
import Testing

@testable import PushServices

@Suite struct TokenAnswerTests {
  private func answer(_ status: Int, _ body: String, retryAfter: String? = nil) -> TokenAnswer {
    TokenAnswer(status: status, body: Array(body.utf8), retryAfter: retryAfter, now: Fixtures.now)
  }

  @Test(arguments: [
    (#"{"access_token":"a","token_type":"bearer","expires_in":3599}"#, 3599),
    (#"{"access_token":"a","expires_in":"86399"}"#, 86_399),
    (#"{"access_token":"a"}"#, 3600), (#"{"expires_in":null,"access_token":"a","ext":{"x":[1]}}"#, 3600),
  ])
  func granted(body: String, seconds: Int) {
    guard case .granted("a", let lifetime) = answer(200, body) else {
      Issue.record("not granted")
      return
    }
    #expect(lifetime == .seconds(seconds))
  }

  @Test(arguments: [
    "", "{}", "<html>", #"{"access_token":""}"#, #"{"access_token":"a b"}"#, #"{"access_token":"a\r\nb"}"#,
    #"{"access_token":"a""#,
    #"{"access_token":"a","expires_in":0}"#, #"{"access_token":"a","expires_in":-5}"#, #"{"access_token":7}"#,
  ])
  func garbledGrantsCountAsUnavailable(body: String) {
    guard case .unavailable(200, nil) = answer(200, body) else {
      Issue.record("taken for something")
      return
    }
  }

  @Test(arguments: [
    (400, #"{"error":"invalid_grant","error_description":"Invalid JWT Signature."}"#, "invalid_grant"),
    (401, #"{"error":"invalid_client"}"#, "invalid_client"),
    (400, #"{"error":"unauthorized_client"}"#, "unauthorized_client"),
    (400, #"{"error":"something the metrics must not see"}"#, "TokenRefused"), (403, "<html>", "TokenRefused"),
    (404, "", "TokenRefused"), (302, "", "TokenRefused"),
  ])
  func refused(status: Int, body: String, reason: String) {
    guard case .refused(let found, let foundStatus) = answer(status, body) else {
      Issue.record("not refused")
      return
    }
    #expect(found == reason)
    #expect(foundStatus == status)
  }

  @Test(arguments: [408, 429, 500, 502, 503, 504]) func unavailable(status: Int) {
    guard case .unavailable(status, .seconds(3)) = answer(status, #"{"error":"invalid_grant"}"#, retryAfter: "3") else {
      Issue.record("not unavailable")
      return
    }
  }
}

@Suite struct RetryAfterTests {
  static let cases: [(String, Duration?)] = [
    ("0", .zero), ("120", .seconds(120)), ("86401", .seconds(86_400)), ("99999999999999999999", .seconds(86_400)),
    ("Sat, 21 Nov 2026 08:00:30 GMT", .seconds(30)), ("Sat, 21 Nov 2026 07:00:00 GMT", .zero),
    ("Fri, 01 Jan 2100 00:00:00 GMT", .seconds(86_400)), ("", nil), ("-1", nil), ("1.5", nil), ("soon", nil),
    ("Sat, 21 Foo 2026 08:00:30 GMT", nil), ("Sat, 21 Nov 2026 08:00:30 CET", nil),
    ("Sat, 41 Nov 2026 08:00:30 GMT", nil),
  ]

  @Test(arguments: cases) func duration(value: String, expected: Duration?) {
    #expect(RetryAfter.duration(value, now: Fixtures.now) == expected)
  }
}
