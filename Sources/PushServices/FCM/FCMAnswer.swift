import FanfareCore

/// One answer of FCM, read.
enum FCMAnswer {
  /// The reason where Firebase could not log in to the push service behind the one device.
  static let thirdPartyRefusal = "THIRD_PARTY_AUTH_ERROR"

  /// What an answer means for the push. FCM's own error code decides, then the canonical status, then the HTTP status.
  ///
  /// `isPayloadProven` is asked only when the answer blames the token: whether the same payload has passed for another
  /// device. Without that proof the payload is held to be bad, and no device is lost.
  static func outcome(
    status: Int, body: [UInt8], retryAfter: String?, now: UnixTime, isPayloadProven: () -> Bool
  ) -> PushOutcome {
    if status == 200 { return PushOutcome(.accepted, status: 200) }
    let error = FCMErrorBody(body)
    let (verdict, reason) = judge(error, status: status, isPayloadProven: isPayloadProven)
    let delay = verdict == .retryLater ? retryAfter.flatMap { RetryAfter.duration($0, now: now) } : nil
    return PushOutcome(verdict, reason: reason, status: status, retryAfter: delay)
  }

  private static func judge(
    _ error: FCMErrorBody, status: Int, isPayloadProven: () -> Bool
  ) -> (PushOutcome.Verdict, reason: String) {
    let badArgument = "INVALID_ARGUMENT"
    func judgeArgument() -> (PushOutcome.Verdict, String) {
      error.blamesToken && isPayloadProven() ? (.deviceGone, badArgument) : (.rejected, badArgument)
    }
    let quota = error.blamesDeviceQuota ? "DEVICE_QUOTA_EXCEEDED" : "QUOTA_EXCEEDED"

    switch error.errorCode {
    case badArgument: return judgeArgument()
    // Our credential is good; the Firebase project's own, for the APNs or web push behind this token, is not. The
    // project's other devices must not wait for that to be mended.
    case thirdPartyRefusal, "APNS_AUTH_ERROR": return (.rejected, thirdPartyRefusal)
    case "SENDER_ID_MISMATCH": return (.deviceGone, "SENDER_ID_MISMATCH")
    case "UNREGISTERED": return (.deviceGone, "UNREGISTERED")
    case "QUOTA_EXCEEDED": return (.retryLater, quota)
    case "INTERNAL": return (.retryLater, "INTERNAL")
    case "UNAVAILABLE": return (.retryLater, "UNAVAILABLE")
    // `UNSPECIFIED_ERROR` and codes that are still to come say nothing of their own.
    default: break
    }
    switch error.status {
    case badArgument: return judgeArgument()
    case "UNAUTHENTICATED": return (.reauthenticate, "UNAUTHENTICATED")
    // Without a code of FCM's own these are about the project, not about the token.
    case "PERMISSION_DENIED": return (.configurationError, "PERMISSION_DENIED")
    case "NOT_FOUND": return (.configurationError, "NOT_FOUND")
    case "RESOURCE_EXHAUSTED": return (.retryLater, quota)
    case "INTERNAL": return (.retryLater, "INTERNAL")
    case "UNAVAILABLE": return (.retryLater, "UNAVAILABLE")
    default: break
    }
    return switch status {
    case 401: (.reauthenticate, "UNAUTHENTICATED")
    case 403: (.configurationError, "PERMISSION_DENIED")
    case 404: (.configurationError, "NOT_FOUND")
    case 413: (.rejected, "PayloadTooLarge")
    case 429: (.retryLater, quota)
    case 408, 500...: (.retryLater, status == 503 ? "UNAVAILABLE" : "ServerError")
    case 400: (.rejected, badArgument)
    default: (.rejected, "UnknownReason")
    }
  }
}
