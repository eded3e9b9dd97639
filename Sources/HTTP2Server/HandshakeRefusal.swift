import NIOCore

/// Refuses a TLS handshake as a server does that does not want it: a fatal alert for the client's first word, and the
/// end.
final class HandshakeRefusal: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// An alert record of TLS 1.2, which answers a client hello of any version: fatal (2), handshake_failure (40).
  private static let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 40]

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Self.alert)), promise: nil)
    context.close(promise: nil)
  }
}
