import FanfareCore
import Testing

@testable import PushServices

@Suite struct FCMAnswerTests {
  private func outcome(
    _ status: Int, _ body: String, retryAfter: String? = nil, isPayloadProven: Bool = false
  ) -> PushOutcome {
    FCMAnswer.outcome(
      status: status, body: Array(body.utf8), retryAfter: retryAfter, now: Fixtures.now,
      isPayloadProven: { isPayloadProven })
  }

  private static func body(_ status: Int, _ name: String, code: String?, message: String = "m", details: [String] = [])
    -> String
  {
    var details = details
    if let code {
      details.append(#"{"errorCode":"\#(code)","@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError"}"#)
    }
    return
      #"{"error":{"code":\#(status),"message":"\#(message)","status":"\#(name)","details":[\#(details.joined(separator: ","))]}}"#
  }

  /// Every row of Google's table: HTTP status, FCM's code, canonical status, verdict, reason.
  static let rows: [(Int, String?, String, PushOutcome.Verdict, String)] = [
    (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", .rejected, "INVALID_ARGUMENT"),
    (401, "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED", .rejected, "THIRD_PARTY_AUTH_ERROR"),
    (401, "APNS_AUTH_ERROR", "UNAUTHENTICATED", .rejected, "THIRD_PARTY_AUTH_ERROR"),
    (401, nil, "UNAUTHENTICATED", .reauthenticate, "UNAUTHENTICATED"),
    (403, "SENDER_ID_MISMATCH", "PERMISSION_DENIED", .deviceGone, "SENDER_ID_MISMATCH"),
    (403, nil, "PERMISSION_DENIED", .configurationError, "PERMISSION_DENIED"),
    (404, "UNREGISTERED", "NOT_FOUND", .deviceGone, "UNREGISTERED"),
    (404, nil, "NOT_FOUND", .configurationError, "NOT_FOUND"),
    (429, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED", .retryLater, "QUOTA_EXCEEDED"),
    (429, nil, "RESOURCE_EXHAUSTED", .retryLater, "QUOTA_EXCEEDED"),
    (500, "INTERNAL", "INTERNAL", .retryLater, "INTERNAL"),
    (503, "UNAVAILABLE", "UNAVAILABLE", .retryLater, "UNAVAILABLE"),
    (400, "UNSPECIFIED_ERROR", "UNKNOWN", .rejected, "INVALID_ARGUMENT"),
    (500, "UNSPECIFIED_ERROR", "UNKNOWN", .retryLater, "ServerError"),
    // The code in the body wins over the HTTP status.
    (200 + 207, "UNREGISTERED", "NOT_FOUND", .deviceGone, "UNREGISTERED"),
    (400, nil, "UNAVAILABLE", .retryLater, "UNAVAILABLE"),
  ]

  @Test(arguments: rows)
  func everyCode(status: Int, code: String?, name: String, verdict: PushOutcome.Verdict, reason: String) {
    let outcome = outcome(status, Self.body(status, name, code: code))
    #expect(outcome.verdict == verdict)
    #expect(outcome.reason == reason)
    #expect(outcome.status == status)
  }

  @Test func accepted() {
    #expect(outcome(200, #"{"name":"projects/p/messages/1"}"#) == PushOutcome(.accepted, status: 200))
  }

  /// A blamed token is removed only if the same payload was accepted for another device.
  @Test(arguments: [
    body(
      400, "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
      details: [
        #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token","description":"d"}]}"#
      ]),
    body(
      400, "INVALID_ARGUMENT", code: nil,
      details: [
        #"{"fieldViolations":[{"description":"d","field":"message.token"}],"@type":"type.googleapis.com/google.rpc.BadRequest"}"#
      ]),
    body(
      400, "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
      message: "The registration token is not a valid FCM registration token"),
  ])
  func blamedToken(body: String) {
    #expect(outcome(400, body, isPayloadProven: true).verdict == .deviceGone)
    #expect(outcome(400, body, isPayloadProven: false).verdict == .rejected)
  }

  @Test func otherViolationsDoNotBlameTheToken() {
    let body = Self.body(
      400, "INVALID_ARGUMENT", code: "INVALID_ARGUMENT",
      details: [
        #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.data","description":"d"}]}"#
      ])
    #expect(outcome(400, body, isPayloadProven: true).verdict == .rejected)
  }

  @Test func delays() {
    let quota = Self.body(429, "RESOURCE_EXHAUSTED", code: "QUOTA_EXCEEDED")
    #expect(outcome(429, quota).retryAfter == nil)
    #expect(outcome(429, quota, retryAfter: "5").retryAfter == .seconds(5))
    #expect(outcome(429, quota, retryAfter: "Sat, 21 Nov 2026 08:02:00 GMT").retryAfter == .seconds(120))
    #expect(outcome(503, "", retryAfter: "9").retryAfter == .seconds(9))
    #expect(outcome(503, "").retryAfter == nil)
    #expect(outcome(404, Self.body(404, "NOT_FOUND", code: "UNREGISTERED"), retryAfter: "9").retryAfter == nil)
  }

  @Test func quotaOfOneDeviceHasItsOwnReason() {
    let detail =
      #"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"subject":"s","description":"Device message rate exceeded"}]}"#
    let outcome = outcome(429, Self.body(429, "RESOURCE_EXHAUSTED", code: "QUOTA_EXCEEDED", details: [detail]))
    #expect(outcome.reason == "DEVICE_QUOTA_EXCEEDED")
    #expect(outcome.verdict == .retryLater)
  }

  /// For HTML, garbage or an empty body, the HTTP status decides, and no device is removed.
  @Test(arguments: [
    "", "<!DOCTYPE html><title>Error 502 (Server Error)!!1</title>", "{\"error\":",
    "{\"error\":{\"status\":7,\"details\":{}}}",
    "[]",
    "{\"error\":{\"details\":[7,[],{\"@type\":[]},{\"@type\":\"x\",\"errorCode\":\"UNREGISTERED\"}]}}",
    String(repeating: "{", count: 100_000),
  ])
  func garbledBodies(body: String) {
    for (status, verdict, reason) in [
      (400, PushOutcome.Verdict.rejected, "INVALID_ARGUMENT"), (401, .reauthenticate, "UNAUTHENTICATED"),
      (403, .configurationError, "PERMISSION_DENIED"), (404, .configurationError, "NOT_FOUND"),
      (413, .rejected, "PayloadTooLarge"), (418, .rejected, "UnknownReason"), (429, .retryLater, "QUOTA_EXCEEDED"),
      (500, .retryLater, "ServerError"), (502, .retryLater, "ServerError"), (503, .retryLater, "UNAVAILABLE"),
      (504, .retryLater, "ServerError"),
    ] {
      let outcome = outcome(status, body, isPayloadProven: true)
      #expect(outcome.verdict == verdict, "\(status)")
      #expect(outcome.reason == reason, "\(status)")
    }
  }
}
