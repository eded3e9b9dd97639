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
  package init(connectTo: (host: String, port: Int)? = nil) {
    self.connectTo = connectTo
  }

  /// Builds the request for a push; nil if the channel's URI would not be sent byte for byte.
  package func request(for push: Push, channel: ChannelURI, token: String, now: UnixTime) -> HTTPClient.Request? {
    let target = connectTo.map { "\($0.host):\($0.port)" } ?? channel.host
    let url = "https://\(target)\(channel.pathAndQuery)"
    var headers = HTTPHeaders()
    if connectTo != nil { headers.add(name: "host", value: channel.host) }
    headers.add(name: "authorization", value: "Bearer \(token)")
    for field in push.rendering.headers { headers.add(name: field.name, value: field.value) }
    headers.add(name: "ms-cv", value: WNSCorrelation.vector(of: push.id))
    headers.add(name: "x-wns-ttl", value: String(max((push.expiresAt - now).components.seconds, 1)))
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
    Data(id.bytes).base64EncodedString(options: .omitPaddingCharacter) + ".0"
  }
}
