import NIOCore
import NIOHTTP1

/// Refuses requests that are well-formed but that the server must not or cannot take, before their fields are lost.
///
/// - HTTP/1.1 without exactly one `Host` (RFC 9112 §3.2): 400.
/// - A body whose end can be understood in two ways: 400.
/// - A transfer coding other than `chunked`: 501 (RFC 9112 §6.1).
///
/// It also adds `Connection: close` to the last request of a connection: HTTP/1.0 clients need not send it
/// (RFC 9112 §9.3), and later handlers do not know the version.
final class RequestRules: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  /// Whether a request was refused; where the next one begins is then unknown.
  private var isRefused = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused else { return }
    guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
    if let refusal = Self.refusal(of: head) {
      isRefused = true
      let requestID = head.headers.first(name: "X-Request-Id")
      return context.fireErrorCaught(RuleViolation(refusal, requestID: requestID))
    }
    guard head.version != .http1_1 || !head.isKeepAlive else { return context.fireChannelRead(data) }
    if !head.isKeepAlive { head.headers.add(name: "Connection", value: "close") }
    // RFC 9110 §10.1.1: the expectation of an HTTP/1.0 client is ignored.
    if head.version.isOld { head.headers.remove(name: "Expect") }
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The first error is answered; the parser may not understand what follows either.
    if !(error is HTTPParserError) || !isRefused { context.fireErrorCaught(error) }
  }

  private static func refusal(of head: HTTPRequestHead) -> Refusal? {
    var (hosts, lengths, codings) = (0, 0, 0)
    for (name, value) in head.headers {
      // Compared by length first: this runs for every field of every request.
      switch name.utf8.count {
      case 4 where name.lowercased() == "host": hosts += 1
      case 14 where name.lowercased() == "content-length": lengths += 1
      case 17 where name.lowercased() == "transfer-encoding":
        codings += 1
        guard !head.version.isOld else {
          return Refusal(.malformedRequest, "Transfer-Encoding requires HTTP/1.1")
        }
        guard value.lowercased().filter({ $0 != " " && $0 != "\t" }) == "chunked" else {
          return Refusal(.notImplemented, "the only transfer coding that this server knows is chunked")
        }
      default: break
      }
    }
    // RFC 9112 §6.1: another server on the way might see another end of the body.
    guard codings == 0 || lengths == 0, codings <= 1, lengths <= 1 else {
      return Refusal(.malformedRequest, "Content-Length or Transfer-Encoding must be given once, and not both")
    }
    if hosts == 1 || (hosts == 0 && head.version.isOld) { return nil }
    return Refusal(.malformedRequest, "Host must be given exactly once")
  }
}

/// A request that is refused before it is handed to a route. Nothing after it on the connection is read.
struct RuleViolation: Error {
  let refusal: Refusal
  let requestID: String

  init(_ refusal: Refusal, requestID: String?) {
    self.refusal = refusal
    self.requestID = RequestIdentity.requestID(given: requestID)
  }

  /// Describes an error of the parser.
  init(_ error: HTTPParserError) {
    let refusal =
      switch error {
      case .headerOverflow:
        Refusal(.headersTooLarge, "the request line and header fields are larger than the server accepts")
      case .invalidMethod: Refusal(.notImplemented, "this server does not know the request's method")
      default: Refusal(.malformedRequest, "the request is not well-formed HTTP")
      }
    self.init(refusal, requestID: nil)
  }
}

extension HTTPVersion {
  /// Whether the version is older than HTTP/1.1.
  fileprivate var isOld: Bool { major < 1 || (major == 1 && minor < 1) }
}
