import NIOCore
import NIOHTTP1

/// Has a request that is the last of its connection say so in words: an HTTP/1.0 client need not (RFC 9112 §9.3), and
/// further on nobody knows the version.
final class LastRequestMarker: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), !head.isKeepAlive else { return context.fireChannelRead(data) }
    head.headers.add(name: "Connection", value: "close")
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }
}
