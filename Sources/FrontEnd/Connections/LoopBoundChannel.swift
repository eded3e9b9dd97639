import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// A connection that handles its requests on its own event loop. This saves hops between threads.
///
/// `HTTP1Connection` hands the requests over one at a time, `HTTP2Connection` as they come.
struct LoopBoundChannel: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let connection: ClientConnection
    fileprivate let choice: NIOLoopBound<ProtocolChoice>

    var channel: any Channel { connection.channel }
  }

  /// The limits and shared parts of all connections of a listener.
  struct Configuration: Sendable {
    var times: ConnectionLife.Limits
    let reading: HTTP1Connection.Limits
    let decoder: NIOHTTPDecoderLimitConfiguration
    let http2: HTTP2Connection.Limits
    let table: ConnectionTable
    let budgets: ByteBudgets
    let proxies: TrustedProxies
    /// Whether only the proxies and this machine may use the listener.
    let requiresProxy: Bool
    /// Nil for a listener without TLS.
    let tls: ServerTLS?
    /// Nil: all requests go to the responder.
    let direct: DirectRoutes?
  }

  typealias Responder = @Sendable (Request, ClientConnection, PendingAnswer) async throws -> Response

  /// The most bytes of a body that is read on the event loop, which serves other connections too.
  private static let mostOnLoop = 1 << 16

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
      let deadline = NIODeadline.now() + TimeAmount(configuration.times.firstRequestTimeout)
      let choice = ProtocolChoice(isSecure: configuration.tls != nil, deadline: deadline, isWelcome: isWelcome) {
        choice, pipeline in
        var times = configuration.times
        times.firstRequestTimeout = .nanoseconds(max(0, (deadline - .now()).nanoseconds))
        let life = ConnectionLife(limits: times, connection: connection, table: table, isWelcome: isWelcome)
        return switch choice {
        case .http1: .http1(try addHTTP1(to: pipeline, connection, life))
        case .http2: .http2(try addHTTP2(to: pipeline, connection, life))
        }
      }
      try pipeline.addHandler(choice)
      return Value(connection: connection, choice: NIOLoopBound(choice, eventLoop: channel.eventLoop))
    }
  }

  private func addHTTP1(
    to pipeline: ChannelPipeline.SynchronousOperations, _ connection: ClientConnection, _ life: ConnectionLife
  ) throws -> HTTP1Connection {
    let decoder = HTTPRequestDecoder(limitConfiguration: configuration.decoder)
    try pipeline.addHandler(ByteToMessageHandler(decoder))
    let requests = HTTP1Connection(
      connection, limits: configuration.reading, budgets: configuration.budgets, life: life,
      isSecure: configuration.tls != nil, direct: direct(on: pipeline.eventLoop))
    try pipeline.addHandler(requests)
    return requests
  }

  private func addHTTP2(
    to pipeline: ChannelPipeline.SynchronousOperations, _ connection: ClientConnection, _ life: ConnectionLife
  ) throws -> HTTP2Connection {
    let requests = HTTP2Connection(
      connection, limits: configuration.http2, budgets: configuration.budgets, life: life, table: configuration.table,
      isSecure: configuration.tls != nil, direct: direct(on: pipeline.eventLoop))
    try pipeline.addHandler(requests)
    return requests
  }

  private func direct(on eventLoop: any EventLoop) -> HTTP1Connection.Direct? {
    configuration.direct.map { HTTP1Connection.Direct(routes: $0, mailbox: $0.mailbox(of: eventLoop)) }
  }

  func handle(value: Value, logger: Logger) async {
    let loop = value.channel.eventLoop
    await withTaskCancellationHandler {
      await withTaskExecutorPreference(EventLoopExecutor(loop)) {
        switch await value.choice.value.chosen() {
        case .http1(let requests):
          await answer(NIOLoopBound(requests, eventLoop: loop), of: value.connection, logger: logger)
        case .http2(let requests):
          await answer(NIOLoopBound(requests, eventLoop: loop), of: value.connection, logger: logger)
        case nil: break
        }
      }
    } onCancel: {
      value.channel.close(promise: nil)
    }
  }

  private func respond(
    to request: Request, of connection: ClientConnection, _ answer: PendingAnswer
  ) async throws -> Response {
    guard request.mayExceed(Self.mostOnLoop) else { return try await responder(request, connection, answer) }
    return try await withTaskExecutorPreference(globalConcurrentExecutor) {
      try await responder(request, connection, answer)
    }
  }

  private func answer(
    _ requests: NIOLoopBound<HTTP1Connection>, of connection: ClientConnection, logger: Logger
  ) async {
    let loop = connection.channel.eventLoop
    let sink = NIOLoopBound<any AnswerSink>(requests.value, eventLoop: loop)
    while let request = await requests.value.next() {
      do {
        let response = try await respond(to: request, of: connection, requests.value.beginAnswer())
        try await response.body.write(AnswerWriter(response, to: request, number: 0, via: sink, on: loop))
      } catch is AnswerWriter.Refused {
        // Answered.
      } catch {
        logger.debug("Connection closed: answering a request failed", metadata: [LogKeys.cause: "\(error)"])
        connection.channel.close(promise: nil)
      }
    }
  }

  private func answer(
    _ requests: NIOLoopBound<HTTP2Connection>, of connection: ClientConnection, logger: Logger
  ) async {
    let loop = connection.channel.eventLoop
    let sink = NIOLoopBound<any AnswerSink>(requests.value, eventLoop: loop)
    await withDiscardingTaskGroup { group in
      while let (request, streamID, answer) = await requests.value.next() {
        group.addTask {
          do {
            let response = try await respond(to: request, of: connection, answer)
            try await response.body.write(
              AnswerWriter(response, to: request, number: Int(streamID), via: sink, on: loop))
          } catch is AnswerWriter.Refused {
            // Answered.
          } catch {
            logger.debug("Stream reset: answering a request failed", metadata: [LogKeys.cause: "\(error)"])
            requests.value.abandon(streamID)
          }
        }
      }
    }
  }
}

/// Where a request waits for the connection's task, or the task for a request. Confined to the event loop.
struct Handover {
  private var request: Request?
  private var taker: CheckedContinuation<Request?, Never>?

  /// Returns the waiting request.
  mutating func take() -> Request? {
    defer { request = nil }
    return request
  }

  /// Notes that the task waits for a request.
  mutating func wait(_ taker: CheckedContinuation<Request?, Never>) { self.taker = taker }

  mutating func give(_ request: Request) {
    guard let taker else { return self.request = request }
    self.taker = nil
    taker.resume(returning: request)
  }

  /// Lets a waiting task end.
  mutating func end() {
    taker?.resume(returning: nil)
    taker = nil
  }
}
