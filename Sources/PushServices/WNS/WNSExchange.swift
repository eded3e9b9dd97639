package import AsyncHTTPClient
package import FanfareCore
import FoundationEssentials
import NIOCore
import NIOHTTP1
import Synchronization

/// Builds the requests to channels.
package struct WNSRequestWriter: Sendable {
  private let connectTo: (host: String, port: Int)?

  /// Requests go to the channel's host, or to `connectTo` (see `WNSConfiguration.connectTo`).
  package init(connectTo: (host: String, port: Int)? = nil) { self.connectTo = connectTo }

  /// Builds the request for a push; nil if the channel's URI would not be sent byte for byte.
  package func request(for push: Push, channel: ChannelURI, token: String, now: UnixTime) -> HTTPClient.Request? {
    let target = connectTo.map { "\($0.host):\($0.port)" } ?? channel.host
    let url = "https://\(target)\(channel.pathAndQuery)"
    var headers = HTTPHeaders()
    if connectTo != nil { headers.add(name: "host", value: channel.host) }
    headers.add(name: "authorization", value: "Bearer \(token)")
    var timeToLive = max((push.expiresAt - now).components.seconds, 1)
    for field in push.rendering.headers {
      // The caller's own must not outlast the push, and WNS takes the field only once.
      if field.name == WNSFields.timeToLive {
        timeToLive = min(timeToLive, Int64(field.value) ?? timeToLive)
      } else {
        headers.add(name: field.name, value: field.value)
      }
    }
    headers.add(name: "ms-cv", value: WNSCorrelation.vector(of: push.id))
    headers.add(name: WNSFields.timeToLive, value: String(timeToLive))
    do {
      let request = try HTTPClient.Request(url: url, method: .POST, headers: headers, body: .bytes(push.rendering.body))
      return request.url.absoluteString == url ? request : nil
    } catch {
      // A URL that the client refuses is no channel.
      return nil
    }
  }
}

/// One request to WNS. Collects the answer, and notes whether anything of the request was sent.
final class WNSExchange: HTTPClientResponseDelegate {
  typealias Response = HTTPClient.Response

  private let accumulator: ResponseAccumulator
  private let sent = Atomic(false)

  /// An answer of more than `maximumAnswerBytes` is an error.
  init(_ request: HTTPClient.Request, maximumAnswerBytes: Int) {
    accumulator = ResponseAccumulator(request: request, maxBodySize: maximumAnswerBytes)
  }

  /// Whether WNS may have seen the request.
  var wasSent: Bool { sent.load(ordering: .acquiring) }

  func didSendRequestHead(task: HTTPClient.Task<Response>, _ head: HTTPRequestHead) {
    sent.store(true, ordering: .releasing)
  }

  func didReceiveHead(task: HTTPClient.Task<Response>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    accumulator.didReceiveHead(task: task, head)
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Response>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    accumulator.didReceiveBodyPart(task: task, buffer)
  }

  func didReceiveError(task: HTTPClient.Task<Response>, _ error: any Error) {
    accumulator.didReceiveError(task: task, error)
  }

  func didFinishRequest(task: HTTPClient.Task<Response>) throws -> Response {
    try accumulator.didFinishRequest(task: task)
  }
}

/// `MS-CV`, by which Microsoft's logs identify a request. It is derived from the push's id, so that a repeated push can
/// be recognised.
enum WNSCorrelation {
  /// The correlation vector of a push: 22 characters of base64, the length of a base in version 2, and the first
  /// extension.
  static func vector(of id: PushID) -> String {
    // Sixteen bytes make 22 characters and "==", which the extension replaces in place: no second string per push.
    var text = Data(id.bytes).base64EncodedString()
    text.replaceSubrange(text.index(text.endIndex, offsetBy: -2)..., with: ".0")
    return text
  }
}

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
