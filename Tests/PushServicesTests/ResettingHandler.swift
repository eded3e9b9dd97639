import NIOCore

/// Resets a connection, for it leaves unread what the client has begun with.
final class ResettingHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}
