import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// An HTTP/1.1 connection that handles its requests on its own event loop.
/// This saves hops between threads.
///
/// Requests with small bodies are handed over as a whole (`RequestAggregator`), which saves suspensions.
struct LoopBoundChannel: ServerChildChannel {
  /// A connection with both ways of handling its requests.
  struct Value: ServerChildChannelValue {
    let streamed: HTTP1Channel.Value
    let whole: NIOLoopBound<RequestAggregator>

    var channel: any Channel { streamed.channel }
  }

  typealias Responder = @Sendable (Request, any Channel) async throws -> Response

  private let streamed: HTTP1Channel
  private let maximumBodySize: Int
  private let responder: Responder

  /// Requests with bodies of at most `maximumBodySize` bytes are handled as a whole.
  init(configuration: HTTP1Channel.Configuration, maximumBodySize: Int, responder: @escaping Responder) {
    self.maximumBodySize = maximumBodySize
    self.responder = responder
    streamed = HTTP1Channel(
      responder: { request, writer, channel in
        let response = try await responder(request, channel)
        try await writer.write(response: response.head, body: response.body)
      }, configuration: configuration)
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    streamed.setup(channel: channel, logger: logger).flatMapThrowing { [maximumBodySize] streamed in
      let pipeline = channel.pipeline.syncOperations
      // In front of the handler that drops the HTTP version.
      try pipeline.addHandler(
        LastRequestMarker(), position: .after(pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)))
      let whole = RequestAggregator(maximumBodySize: maximumBodySize)
      // Behind the handler that counts open requests.
      try pipeline.addHandler(whole, position: .after(pipeline.handler(type: HTTPConnectionStateHandler.self)))
      return Value(streamed: streamed, whole: NIOLoopBound(whole, eventLoop: channel.eventLoop))
    }
  }

  func handle(value: Value, logger: Logger) async {
    await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
      async let streaming: Void = streamed.handle(value: value.streamed, logger: logger)
      await answer(value, logger: logger)
      await streaming
    }
  }

  private func answer(_ connection: Value, logger: Logger) async {
    while let request = await connection.whole.value.next() {
      do {
        let response = try await responder(request, connection.channel)
        connection.whole.value.write(.head(response.head))
        try await response.body.write(
          AnswerWriter(requests: connection.whole, isLast: request.headers[.connection] == "close"))
      } catch {
        logger.debug("Connection closed: answering a request failed", metadata: [LogKeys.cause: "\(error)"])
        connection.channel.close(promise: nil)
      }
    }
  }
}

/// Writes the body of the answer to a request of `RequestAggregator`.
private struct AnswerWriter: ResponseBodyWriter {
  let requests: NIOLoopBound<RequestAggregator>
  let isLast: Bool

  func write(_ buffer: ByteBuffer) async throws { requests.value.write(.body(buffer)) }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
    requests.value.finish(trailers: trailingHeaders, isLast: isLast)
  }
}

/// Adds `Connection: close` to the last request of a connection.
///
/// HTTP/1.0 clients need not send it (RFC 9112 §9.3), and later handlers do not know the version.
private final class LastRequestMarker: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), !head.isKeepAlive else { return context.fireChannelRead(data) }
    head.headers.add(name: "Connection", value: "close")
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }
}

extension ChannelHandlerContext {
  /// Calls the closure when all answers handed over so far are written, or cannot be written.
  /// It is called once, on the event loop.
  ///
  /// It waits for an empty write behind them. Call it on the event loop.
  func whenWritten(_ act: @escaping (ChannelHandlerContext) -> Void) {
    let written = eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in act(self) }
    do {
      let encoder = try pipeline.syncOperations.context(handlerType: HTTPResponseEncoder.self)
      encoder.writeAndFlush(NIOAny(ByteBuffer()), promise: written)
    } catch {
      // The connection and its handlers are gone.
      written.fail(error)
    }
  }
}
