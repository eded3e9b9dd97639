import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// An HTTP/1.1 connection whose requests are handled on the event loop that reads and writes it, small ones as a whole:
/// otherwise every request costs several hops between threads, and several suspensions.
struct LoopBoundChannel: ServerChildChannel {
  /// A connection, by both ways in which its requests are handled.
  struct Value: ServerChildChannelValue {
    let streamed: HTTP1Channel.Value
    let whole: NIOLoopBound<WholeRequests>

    var channel: any Channel { streamed.channel }
  }

  typealias Responder = @Sendable (Request, any Channel) async throws -> Response

  private let streamed: HTTP1Channel
  private let maximumBodySize: Int
  private let responder: Responder

  /// Connections of that configuration, where bodies of at most so many bytes are small.
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
      // Before what forgets the version.
      try pipeline.addHandler(
        LastRequestMarker(), position: .after(pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)))
      let whole = WholeRequests(maximumBodySize: maximumBodySize)
      // Behind what counts the requests under way.
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
        logger.debug("A connection is closed, for a request was not answered", metadata: [LogKeys.cause: "\(error)"])
        connection.channel.close(promise: nil)
      }
    }
  }
}

/// Writes the body of the answer to a request that was handled as a whole.
private struct AnswerWriter: ResponseBodyWriter {
  let requests: NIOLoopBound<WholeRequests>
  let isLast: Bool

  func write(_ buffer: ByteBuffer) async throws { requests.value.write(.body(buffer)) }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
    requests.value.finish(trailers: trailingHeaders, isLast: isLast)
  }
}
