package import FanfareCore
package import HTTP2

/// Outcomes that a sender decides itself. Their reasons are Fanfare's own words.
extension PushOutcome {
  /// The service has checked the message and delivered nothing, as it asks.
  static let dryRun = PushOutcome(.rejected, reason: "DryRun", status: 200)
  /// The handle is no channel URI of WNS; nothing may be sent to it.
  static let badChannel = PushOutcome(.deviceGone, reason: "BadChannelURI")

  /// The push expired before it could be sent; the worker settles it by its own clock.
  static let expired = PushOutcome(.retryLater, reason: "Expired")
  /// The queue is full.
  static let queueFull = PushOutcome(.retryLater, reason: "QueueFull")
  /// The sender is shut down or shutting down.
  static let closed = PushOutcome(.retryLater, reason: "Closed")
  /// No connection or stream was free within the request's time; the service has not seen the push.
  static let notSent = PushOutcome(.retryLater, reason: "NotSent")
  /// There is no access token now. It counts like a missing connection, whatever the token endpoint answered, because
  /// that answer is not about the push.
  static let tokenUnavailable = PushOutcome(.retryLater, reason: "TokenUnavailable")
  /// The host of the device's channel is unreachable, although other hosts of the service answer.
  static let hostUnreachable = PushOutcome(.retryLater, reason: "HostUnreachable")
}

extension PushOutcome {
  /// What it means for a push that its HTTP/2 request got no answer.
  ///
  /// A request that the service certainly has not processed is sent again at once; one that found no connection in all
  /// its time is not, because an immediate retry would not help.
  package init(_ error: HTTP2RequestError) {
    let (reason, verdictIfNotProcessed): (String, Verdict) =
      switch error.code {
      case .refused: ("RefusedStream", .retryHere)
      case .goAway: ("GoAway", .retryHere)
      case .connectionLost: ("ConnectionLost", .retryHere)
      case .streamReset: ("StreamReset", .retryHere)
      case .responseTooLarge: ("ResponseTooLarge", .retryHere)
      case .deadlineExceeded: ("DeadlineExceeded", .retryLater)
      case .requestTooLarge: ("HeadersTooLarge", .malformed)
      case .superseded: ("ConnectionsRenewed", .retryHere)
      case .queueFull: ("QueueFull", .retryLater)
      case .closed: ("Closed", .retryLater)
      }
    self.init(error.wasPossiblyProcessed ? .unknown : verdictIfNotProcessed, reason: reason)
  }
}

/// The value of a `Retry-After` header field (RFC 9110 §10.2.3).
enum RetryAfter {
  /// The longest wait that is believed; a longer one outlasts every send, or is an error.
  static let maximum: Duration = .seconds(24 * 3600)

  /// Seconds, or the time until an HTTP date, limited to `maximum`; nil for any other value. Of the three forms of an
  /// HTTP date only the one that may still be sent is read (`Sun, 06 Nov 1994 08:49:37 GMT`).
  static func duration(_ value: String, now: UnixTime) -> Duration? {
    if !value.isEmpty, value.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) {
      return Int64(value).map { min(.seconds($0), maximum) } ?? maximum
    }
    guard let date = date(value) else { return nil }
    return min(max(date - now, .zero), maximum)
  }

  private static func date(_ value: String) -> UnixTime? {
    let parts = value.split(separator: " ")
    guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT", parts[1].utf8.count == 2 else { return nil }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard let month = months.firstIndex(of: String(parts[2])) else { return nil }
    return UnixTime("\(parts[3])-\(month < 9 ? "0" : "")\(month + 1)-\(parts[1])T\(parts[4])Z")
  }
}
