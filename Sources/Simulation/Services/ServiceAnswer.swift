import FanfareCore
import HTTP2
import PushServices

/// The fate of a push at a push service. The senders' own code tells the meaning of each answer.
enum ServiceAnswer: Hashable {
  case accepted
  case gone(since: UnixTime)
  /// 413: this push is too large.
  case tooLarge
  /// 400: the request is not one.
  case malformed
  /// 429, with the seconds of a `Retry-After` if there is one.
  case throttled(retryAfter: Int?)
  /// 503.
  case unavailable
  /// 500.
  case failing
  /// The credential is refused.
  case refused
  /// The credential has expired.
  case expired
  /// The connection is closed by GOAWAY before the push is processed.
  case goAway
  /// The connection is lost after the push was sent.
  case connectionLost
  /// There is no answer within the sender's time.
  case silence

  func outcome(on platform: Platform, at now: UnixTime) -> PushOutcome {
    switch self {
    case .goAway: PushOutcome(HTTP2RequestError(.goAway, wasPossiblyProcessed: false))
    case .connectionLost: PushOutcome(HTTP2RequestError(.connectionLost, wasPossiblyProcessed: true))
    case .silence: PushOutcome(HTTP2RequestError(.deadlineExceeded, wasPossiblyProcessed: true))
    default: platform == .fcm ? ofFCM(at: now) : ofAPNs(at: now)
    }
  }

  private var retryAfter: String? { if case .throttled(let seconds?) = self { "\(seconds)" } else { nil } }

  private func ofAPNs(at now: UnixTime) -> PushOutcome {
    let (status, reason): (Int, String) =
      switch self {
      case .gone: (410, "Unregistered")
      case .tooLarge: (413, "PayloadTooLarge")
      case .malformed: (400, "BadMessageId")
      case .throttled: (429, "TooManyRequests")
      case .unavailable: (503, "ServiceUnavailable")
      case .failing: (500, "InternalServerError")
      case .refused: (403, "InvalidProviderToken")
      case .expired: (403, "ExpiredProviderToken")
      case .accepted, .goAway, .connectionLost, .silence: (200, "")
      }
    let since = if case .gone(let moment) = self { #","timestamp":\#(moment.milliseconds)"# } else { "" }
    let body = Array(#"{"reason":"\#(reason)"\#(since)}"#.utf8)
    return APNsAnswer(status: status, body: body, retryAfter: retryAfter, now: now).outcome
  }

  private func ofFCM(at now: UnixTime) -> PushOutcome {
    let (status, code): (Int, String) =
      switch self {
      case .gone: (404, "UNREGISTERED")
      case .tooLarge: (413, "")
      case .malformed: (400, "INVALID_ARGUMENT")
      case .throttled: (429, "QUOTA_EXCEEDED")
      case .unavailable: (503, "UNAVAILABLE")
      case .failing: (500, "INTERNAL")
      case .refused: (403, "PERMISSION_DENIED")
      case .expired: (401, "UNAUTHENTICATED")
      case .accepted, .goAway, .connectionLost, .silence: (200, "")
      }
    // Errors of the credential have no code of FCM's own.
    let member =
      self == .refused || self == .expired
      ? #""status":"\#(code)""#
      : #""details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(code)"}]"#
    return FCMAnswer.outcome(
      status: status, body: Array("{\"error\":{\(member)}}".utf8), retryAfter: retryAfter, now: now,
      isPayloadProven: { true })
  }
}
