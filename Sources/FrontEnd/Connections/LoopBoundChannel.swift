import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// An HTTP/1.1 connection that handles its requests on its own event loop.
/// This saves hops between threads.
///
/// `RequestAggregator` hands the requests over, one at a time.
struct LoopBoundChannel: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let connection: ClientConnection
    fileprivate let requests: NIOLoopBound<RequestAggregator>

    var channel: any Channel { connection.channel }
  }

  /// The limits and shared parts of all connections of a listener.
  struct Configuration: Sendable {
    let guarding: ConnectionGuard.Limits
    let reading: RequestAggregator.Limits
    let decoder: NIOHTTPDecoderLimitConfiguration
    let table: ConnectionTable
    let budget: BodyBudget
    let proxies: TrustedProxies
    /// Whether only the proxies and this machine may use the listener.
    let requiresProxy: Bool
    /// Nil for a listener without TLS.
    let tls: ServerTLS?
  }

  typealias Responder = @Sendable (Request, ClientConnection) async throws -> Response

  private let configuration: Configuration
  private let responder: Responder

  init(configuration: Configuration, responder: @escaping Responder) {
    (self.configuration, self.responder) = (configuration, responder)
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      let connection = ClientConnection(
        channel: channel, proxies: configuration.proxies, requiresProxy: configuration.requiresProxy)
      let table = configuration.table
      let isWelcome = table.add(connection)
      channel.closeFuture.whenComplete { _ in table.remove(connection) }
      // One read at a time: what a client sends before it is admitted is held in memory.
      try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
      let pipeline = channel.pipeline.syncOperations
      if let tls = configuration.tls { try tls.addHandlers(to: pipeline, of: connection) }
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: false, withErrorHandling: false,
        // HTTP types have been validated.
        withOutboundHeaderValidation: false, withEncoderConfiguration: .init(),
        withDecoderLimitConfiguration: configuration.decoder)
      try pipeline.addHandler(RequestRules())
      try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: configuration.tls != nil))
      try pipeline.addHandler(
        ConnectionGuard(limits: configuration.guarding, connection: connection, table: table, isWelcome: isWelcome))
      let requests = RequestAggregator(
        limits: configuration.reading, budget: configuration.budget, connection: connection)
      try pipeline.addHandler(requests)
      return Value(connection: connection, requests: NIOLoopBound(requests, eventLoop: channel.eventLoop))
    }
  }

  func handle(value: Value, logger: Logger) async {
    await withTaskCancellationHandler {
      await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
        await answer(value, logger: logger)
      }
    } onCancel: {
      value.channel.close(promise: nil)
    }
  }

  private func answer(_ value: Value, logger: Logger) async {
    while let request = await value.requests.value.next() {
      do {
        let response = try await responder(request, value.connection)
        value.requests.value.write(.head(response.head))
        try await response.body.write(AnswerWriter(requests: value.requests))
      } catch {
        logger.debug("Connection closed: answering a request failed", metadata: [LogKeys.cause: "\(error)"])
        value.channel.close(promise: nil)
      }
    }
  }
}

/// Writes the body of the answer to a request of `RequestAggregator`.
private struct AnswerWriter: ResponseBodyWriter {
  let requests: NIOLoopBound<RequestAggregator>

  func write(_ buffer: ByteBuffer) async throws { requests.value.write(.body(buffer)) }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
    requests.value.finish(trailers: trailingHeaders)
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
