import AsyncHTTPClient
import FanfareCore

/// What an answer of WNS means for the push.
enum WNSAnswer {
  /// The wait after 412; the predecessor of WNS gave it for an unreachable device.
  static let unreachableDelay: Duration = .seconds(3600)

  /// The parts of an answer besides the status.
  struct Fields: Sendable {
    /// `X-WNS-Status`, formerly `X-WNS-NotificationStatus`.
    var status: String?
    /// `X-WNS-Error-Description`, and the body.
    var description = ""
    /// `Retry-After`.
    var retryAfter: String?
  }

  /// What an answer means for the push.
  ///
  /// `appWorks` is whether WNS has accepted a push with the same credential. If so, a 403 concerns the channel, which
  /// belongs to another app. If not, the push waits: by its next attempt another push may have shown that the app
  /// works. So a single channel never stops the sender, and an app that never works fails its pushes with their reason.
  static func outcome(status: Int, fields: Fields, appWorks: Bool, now: UnixTime) -> PushOutcome {
    func retry(_ reason: String, default delay: Duration? = nil) -> PushOutcome {
      PushOutcome(
        .retryLater, reason: reason, status: status,
        retryAfter: fields.retryAfter.flatMap { RetryAfter.duration($0, now: now) } ?? delay)
    }
    func outcome(_ verdict: PushOutcome.Verdict, _ reason: String) -> PushOutcome {
      PushOutcome(verdict, reason: reason, status: status)
    }
    switch status {
    case 200:
      switch fields.status?.lowercased() {
      // Dropped: the client refuses this notification or was offline; the channel is good.
      case "dropped": return outcome(.rejected, "dropped")
      case "channelthrottled": return retry("channelthrottled")
      default: return PushOutcome(.accepted, status: 200)
      }
    case 400: return outcome(.malformed, "BadRequest")
    case 401: return outcome(.reauthenticate, "Unauthorized")
    case 403: return appWorks ? outcome(.deviceGone, "ChannelForbidden") : retry("Forbidden")
    case 404: return outcome(.deviceGone, "NotFound")
    case 405: return outcome(.malformed, "MethodNotAllowed")
    case 406: return retry("Throttled")
    case 410:
      return fields.description.lowercased().contains("domain blocked")
        ? outcome(.configurationError, "DomainBlocked") : outcome(.deviceGone, "Gone")
    case 412: return retry("DeviceUnreachable", default: unreachableDelay)
    case 413: return outcome(.rejected, "PayloadTooLarge")
    case 408, 429: return retry("Throttled")
    case 503: return retry("ServiceUnavailable")
    case 500...: return retry("ServerError")
    // Redirects are not followed, because they would send the bearer token to another host.
    case 300..<400: return outcome(.malformed, "Redirect")
    default: return outcome(.rejected, "UnknownReason")
    }
  }
}

extension PushOutcome {
  /// What it means for a push that its HTTP/1.1 request got no answer. If nothing was sent, WNS has not seen it, and an
  /// immediate retry would not find a connection either; otherwise the outcome is unknown.
  init(wnsError error: any Error, wasSent: Bool) {
    switch error as? HTTPClientError {
    case .alreadyShutdown: self = .closed
    case _ where !wasSent: self = .notSent
    case .deadlineExceeded, .readTimeout, .writeTimeout: self.init(.unknown, reason: "DeadlineExceeded")
    default:
      self.init(
        .unknown, reason: error is ResponseAccumulator.ResponseTooBigError ? "ResponseTooLarge" : "ConnectionLost")
    }
  }
}
