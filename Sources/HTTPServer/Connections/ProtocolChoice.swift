import NIOCore
import NIOTLS

/// Decides which protocol a new connection speaks, and adds the handlers of that protocol in its own place.
///
/// With TLS the handshake decides (ALPN). In the clear the first bytes do: a client with prior knowledge begins with
/// the preface of HTTP/2 (RFC 9113 §3.4), which no HTTP/1.1 request begins with.
final class ProtocolChoice: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  enum Choice {
    case http1, http2
  }

  /// The last handler of the protocol that was chosen.
  enum Requests {
    case http1(HTTP1Connection)
    case http2(HTTP2Connection)
  }

  typealias Begin = (Choice, ChannelPipeline.SynchronousOperations) throws -> Requests

  /// The first bytes of every HTTP/2 connection.
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private let isSecure: Bool
  /// The moment by which the first request must have begun.
  private let deadline: NIODeadline
  /// Whether the connection has a place.
  private let isWelcome: Bool
  /// Adds the handlers of a protocol to the end of the pipeline.
  private let begin: Begin
  private var received: ByteBuffer?
  private var timer: Scheduled<Void>?
  private var requests: Requests?
  private var isOver = false
  private var waiter: CheckedContinuation<Void, Never>?

  init(
    isSecure: Bool, deadline: NIODeadline, isWelcome: Bool,
    begin: @escaping Begin
  ) {
    (self.isSecure, self.deadline, self.isWelcome, self.begin) = (isSecure, deadline, isWelcome, begin)
  }

  /// Waits for the choice. Returns nil if the connection was closed before. Call it on the event loop, once.
  func chosen() async -> Requests? {
    if !isOver { await withCheckedContinuation { waiter = $0 } }
    defer { requests = nil }
    return requests
  }

  func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { start(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    isOver = true
    waiter?.resume()
    waiter = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    start(context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // With TLS nothing arrives before the handshake has ended.
    guard !isSecure else { return }
    var bytes = unwrapInboundIn(data)
    if var received {
      received.writeBuffer(&bytes)
      bytes = received
    }
    received = bytes
    let seen = bytes.readableBytesView.prefix(Self.preface.count)
    guard Self.preface.starts(with: seen) else { return choose(.http1, context) }
    if seen.count == Self.preface.count { choose(.http2, context) }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let event as TLSUserEvent:
      if case .handshakeCompleted(let negotiated) = event { choose(negotiated == "h2" ? .http2 : .http1, context) }
    case is Eviction, is ChannelShouldQuiesceEvent: context.close(promise: nil)
    default:
      if let event = event as? ChannelEvent, event == .inputClosed { return context.close(promise: nil) }
      context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func start(_ context: ChannelHandlerContext) {
    guard isWelcome else { return context.close(promise: nil) }
    timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { context.close(promise: nil) }
  }

  private func choose(_ choice: Choice, _ context: ChannelHandlerContext) {
    let received = received
    self.received = nil
    do {
      requests = try begin(choice, context.pipeline.syncOperations)
      if let received { context.fireChannelRead(wrapInboundOut(received)) }
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }
}

// The handler and its timer are confined to one event loop.
@available(*, unavailable)
extension ProtocolChoice: Sendable {}
