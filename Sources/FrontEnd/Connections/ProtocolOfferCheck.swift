import NIOCore

/// Refuses a TLS client that offers only protocols that the listener does not speak, before the handshake.
///
/// RFC 7301 §3.2 demands the alert `no_application_protocol`. BoringSSL would send it, but NIOSSL goes on without a
/// protocol, which then counts as HTTP/1.1: a client of another protocol could be made to talk to this server (ALPACA).
/// Reads the client's first message as it passes, and nothing after it. What it cannot read is left to BoringSSL.
final class ProtocolOfferCheck: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// A fatal alert in a record of its own (RFC 8446 §6): `no_application_protocol` has the number 120.
  private static let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 120]
  /// More than any message of a client; BoringSSL's limit is of this size too.
  private static let maximumSize = 1 << 15

  private var received = ByteBuffer()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received.writeImmutableBuffer(unwrapInboundIn(data))
    switch Self.offer(in: received) {
    case .incomplete where received.readableBytes < Self.maximumSize: return
    case .foreign:
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Self.alert)), promise: nil)
      context.close(promise: nil)
    case .acceptable, .incomplete:
      context.fireChannelRead(wrapInboundOut(received))
      context.fireChannelReadComplete()
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }
  }

  enum Offer {
    case incomplete
    /// A protocol of the listener, none, or no message that can be read.
    case acceptable
    /// Other protocols alone.
    case foreign
  }

  /// Reads the protocols that a client offers in its first message, `ClientHello`.
  static func offer(in bytes: ByteBuffer) -> Offer {
    guard let hello = hello(in: bytes) else { return .incomplete }
    guard var extensions = extensions(of: hello) else { return .acceptable }
    while let type = extensions.readInteger(as: UInt16.self), var content = read(UInt16.self, from: &extensions) {
      guard type == 16, var names = read(UInt16.self, from: &content) else { continue }
      while let name = read(UInt8.self, from: &names) {
        if ServerTLS.protocols.contains(String(buffer: name)) { return .acceptable }
      }
      return .foreign
    }
    return .acceptable
  }

  /// Joins the records of the message; nil if more of them must come. Empty if it is no `ClientHello`.
  private static func hello(in bytes: ByteBuffer) -> ByteBuffer? {
    var (rest, message) = (bytes, ByteBuffer())
    while true {
      // Type, version and length of a record (RFC 8446 §5.1); 22 is that of handshakes.
      guard let type = rest.readInteger(as: UInt8.self) else { return nil }
      guard type == 22 else { return ByteBuffer() }
      rest.moveReaderIndex(forwardBy: min(2, rest.readableBytes))
      guard let fragment = read(UInt16.self, from: &rest) else { return nil }
      message.writeImmutableBuffer(fragment)
      guard message.readableBytes >= 4 else { continue }
      guard message.getInteger(at: message.readerIndex, as: UInt8.self) == 1,
        let high = message.getInteger(at: message.readerIndex + 1, as: UInt8.self),
        let low = message.getInteger(at: message.readerIndex + 2, as: UInt16.self)
      else { return ByteBuffer() }
      let length = Int(high) << 16 | Int(low)
      if length > maximumSize { return ByteBuffer() }
      if message.readableBytes >= 4 + length { return message.getSlice(at: message.readerIndex + 4, length: length) }
    }
  }

  /// The extensions behind the version, the random number, the session, the suites and the compression methods.
  private static func extensions(of hello: ByteBuffer) -> ByteBuffer? {
    var rest = hello
    guard rest.readSlice(length: 34) != nil, read(UInt8.self, from: &rest) != nil,
      read(UInt16.self, from: &rest) != nil, read(UInt8.self, from: &rest) != nil
    else { return nil }
    return read(UInt16.self, from: &rest)
  }

  /// Reads a field behind its length; nil if it has not come whole.
  private static func read<Length: FixedWidthInteger>(_: Length.Type, from bytes: inout ByteBuffer) -> ByteBuffer? {
    bytes.readInteger(as: Length.self).flatMap { bytes.readSlice(length: Int($0)) }
  }
}
