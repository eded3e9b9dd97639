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
  private var hello = ClientHello()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    received.writeImmutableBuffer(bytes)
    switch hello.read(bytes) {
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
}

extension ProtocolOfferCheck {
  /// The first message of a client, as it arrives. Each byte is read once, in however small pieces a client sends it.
  struct ClientHello {
    /// The beginning of the next record.
    private var rest = ByteBuffer()
    /// The joined contents of the records.
    private var message = ByteBuffer()

    /// Reads the next bytes. Returns the protocols' judgement as soon as the message is whole.
    mutating func read(_ bytes: ByteBuffer) -> Offer {
      rest.writeImmutableBuffer(bytes)
      guard let content = join() else { return .incomplete }
      guard var extensions = Self.extensions(of: content) else { return .acceptable }
      while let type = extensions.readInteger(as: UInt16.self),
        var content = Self.read(UInt16.self, from: &extensions)
      {
        guard type == 16, var names = Self.read(UInt16.self, from: &content) else { continue }
        while let name = Self.read(UInt8.self, from: &names) {
          if ServerTLS.protocols.contains(String(buffer: name)) { return .acceptable }
        }
        return .foreign
      }
      return .acceptable
    }

    /// Joins records until the message is whole; nil if more of them must come. Empty if it is no `ClientHello`.
    private mutating func join() -> ByteBuffer? {
      while true {
        let start = message.readerIndex
        if let type = message.getInteger(at: start, as: UInt8.self),
          let high = message.getInteger(at: start + 1, as: UInt8.self),
          let low = message.getInteger(at: start + 2, as: UInt16.self)
        {
          let length = Int(high) << 16 | Int(low)
          guard type == 1, length <= ProtocolOfferCheck.maximumSize else { return ByteBuffer() }
          if let content = message.getSlice(at: start + 4, length: length) { return content }
        }
        // Type, version and length of a record (RFC 8446 §5.1); 22 is the type of handshakes.
        guard let type = rest.getInteger(at: rest.readerIndex, as: UInt8.self) else { return nil }
        guard type == 22 else { return ByteBuffer() }
        guard let length = rest.getInteger(at: rest.readerIndex + 3, as: UInt16.self),
          rest.readableBytes >= 5 + Int(length)
        else { return nil }
        rest.moveReaderIndex(forwardBy: 5)
        if var fragment = rest.readSlice(length: Int(length)) { message.writeBuffer(&fragment) }
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
}
