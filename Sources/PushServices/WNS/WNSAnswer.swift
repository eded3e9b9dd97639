import FanfareCore

/// One answer of WNS, read.
enum WNSAnswer {
  /// The wait after 412, which the predecessor of WNS gave for a device out of reach.
  static let unreachableDelay: Duration = .seconds(3600)

  /// What WNS says besides the status.
  struct Fields: Sendable {
    /// `X-WNS-Status`, or `X-WNS-NotificationStatus` as it was called once.
    var status: String?
    /// `X-WNS-Error-Description`, and the body.
    var description = ""
    /// `Retry-After`.
    var retryAfter: String?
  }

  /// What an answer means for the push.
  ///
  /// `appWorks` says whether WNS has taken a push with the same credential. If it has, a 403 is about the channel,
  /// which belongs to another app. If it has not, nobody can tell yet: the push waits, and by its next attempt another
  /// may have shown that the app works. A single channel never stops the sender, and an app that never works fails its
  /// pushes by name.
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
      // Dropped: the client refuses this notification, or was offline; the channel is good.
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
    // Redirects are not followed, for they would take the bearer token elsewhere.
    case 300..<400: return outcome(.malformed, "Redirect")
    default: return outcome(.rejected, "UnknownReason")
    }
  }
}
