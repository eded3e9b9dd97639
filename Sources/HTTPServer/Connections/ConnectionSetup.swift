import HTTPTypes
import Logging
import NIOCore

/// Sets up the connections of a listener, each of which handles its requests on its own event loop. This saves hops
/// between threads.
///
/// `HTTP1Connection` hands its requests over one at a time, `HTTP2Connection` as they come.
struct ConnectionSetup: Sendable {
  struct Connection: Sendable {
    let client: ClientConnection
    fileprivate let choice: NIOLoopBound<ProtocolChoice>
  }

  /// The most bytes of a body that is read on the event loop, which serves other connections too.
  private static let mostOnLoop = 1 << 16

  let configuration: ListenerConfiguration
  let application: any Application
  let table: ConnectionTable

  /// Adds the handlers of a connection that was just accepted.
  func add(_ channel: any Channel) -> EventLoopFuture<Connection> {
    channel.eventLoop.makeCompletedFuture {
      let connection = ClientConnection(
        channel: channel, proxies: configuration.proxies, requiresProxy: configuration.requiresProxy,
        isSecure: configuration.tls != nil, memory: application.makeMemory(on: channel.eventLoop))
      let table = table
      let isWelcome = table.add(connection)
      channel.closeFuture.whenComplete { _ in table.remove(connection) }
      // One read at a time: what a client sends before it is admitted is held in memory.
      try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
      let pipeline = channel.pipeline.syncOperations
      if let tls = configuration.tls { try tls.addHandlers(to: pipeline, of: connection) }
      let deadline = NIODeadline.now() + TimeAmount(configuration.firstRequestTimeout)
      let choice = ProtocolChoice(isSecure: configuration.tls != nil, deadline: deadline, isWelcome: isWelcome) {
        choice, pipeline in
        let limits = ConnectionLife.Limits(
          firstRequestTimeout: .nanoseconds(max(0, (deadline - .now()).nanoseconds)),
          idleTimeout: configuration.idleTimeout, writeTimeout: configuration.writeTimeout,
          slowReadersGiveWay: configuration.slowReadersGiveWay, drainTimeout: configuration.drainTimeout)
        let life = ConnectionLife(limits: limits, connection: connection, table: table, isWelcome: isWelcome)
        return switch choice {
        case .http1: .http1(try addHTTP1(to: pipeline, connection, life))
        case .http2: .http2(try addHTTP2(to: pipeline, connection, life))
        }
      }
      try pipeline.addHandler(choice)
      return Connection(client: connection, choice: NIOLoopBound(choice, eventLoop: channel.eventLoop))
    }
  }

  private func addHTTP1(
    to pipeline: ChannelPipeline.SynchronousOperations, _ connection: ClientConnection, _ life: ConnectionLife
  ) throws -> HTTP1Connection {
    let limits = HTTP1Parser.Limits(
      fieldSize: configuration.maximumHeaderFieldSize, size: configuration.maximumHeaderSize,
      count: configuration.maximumHeaderCount, requiresHost: configuration.requiresHost)
    let requests = HTTP1Connection(
      connection, parser: HTTP1Parser(limits: limits),
      limits: HTTP1Connection.Limits(
        wholeBodySize: configuration.wholeBodySize, bodyTimeout: configuration.bodyTimeout,
        // Beyond this, reading a refused body to its end costs more than a new connection.
        maximumDiscard: 4 * configuration.maximumBodySize),
      budgets: configuration.budgets, life: life, application: application)
    try pipeline.addHandler(requests)
    return requests
  }

  private func addHTTP2(
    to pipeline: ChannelPipeline.SynchronousOperations, _ connection: ClientConnection, _ life: ConnectionLife
  ) throws -> HTTP2Connection {
    let requests = HTTP2Connection(
      connection,
      limits: HTTP2Connection.Limits(
        head: HTTP2Head.Limits(
          fieldSize: configuration.maximumHeaderFieldSize, size: configuration.maximumHeaderSize,
          count: configuration.maximumHeaderCount),
        bodySize: configuration.maximumBodySize, bodyTimeout: configuration.bodyTimeout,
        writeTimeout: configuration.writeTimeout),
      budgets: configuration.budgets, life: life, table: table, application: application)
    try pipeline.addHandler(requests)
    return requests
  }

  /// Answers the requests of a connection until it is closed.
  func serve(_ connection: Connection, logger: Logger) async {
    let (channel, loop) = (connection.client.channel, connection.client.channel.eventLoop)
    await withTaskCancellationHandler {
      await withTaskExecutorPreference(EventLoopExecutor(loop)) {
        switch await connection.choice.value.chosen() {
        case .http1(let requests): await answer(NIOLoopBound(requests, eventLoop: loop), channel, logger: logger)
        case .http2(let requests): await answer(NIOLoopBound(requests, eventLoop: loop), logger: logger)
        case nil: break
        }
      }
    } onCancel: {
      channel.close(promise: nil)
    }
  }

  private func answer(_ requests: NIOLoopBound<HTTP1Connection>, _ channel: any Channel, logger: Logger) async {
    let loop = channel.eventLoop
    let sink = NIOLoopBound<any AnswerSink>(requests.value, eventLoop: loop)
    while let task = await requests.value.next() {
      do {
        try await write(
          task, awaitedAs: requests.value.beginAnswer(), number: 0, via: sink, on: loop)
      } catch is AnswerWriter.Refused {
        // Answered.
      } catch {
        logger.debug("Connection closed: answering a request failed", metadata: [LogKeys.error: "\(error)"])
        channel.close(promise: nil)
      }
    }
  }

  private func answer(_ requests: NIOLoopBound<HTTP2Connection>, logger: Logger) async {
    let loop = requests.value.connection.channel.eventLoop
    let sink = NIOLoopBound<any AnswerSink>(requests.value, eventLoop: loop)
    await withDiscardingTaskGroup { group in
      while let (task, streamID, pending) = await requests.value.next() {
        group.addTask {
          do {
            try await write(task, awaitedAs: pending, number: Int(streamID), via: sink, on: loop)
          } catch is AnswerWriter.Refused {
            // Answered.
          } catch {
            logger.debug("Stream reset: answering a request failed", metadata: [LogKeys.error: "\(error)"])
            requests.value.abandon(streamID)
          }
        }
      }
    }
  }

  private func write(
    _ task: RequestTask, awaitedAs pending: PendingAnswer, number: Int, via sink: NIOLoopBound<any AnswerSink>,
    on loop: any EventLoop
  ) async throws {
    let exchange = task.exchange.awaited(as: pending)
    let answer: Answer
    if exchange.bodyLength.mayExceed(Self.mostOnLoop) {
      answer = try await withTaskExecutorPreference(globalConcurrentExecutor) {
        try await perform(task.work, exchange)
      }
    } else {
      answer = try await perform(task.work, exchange)
    }
    var writer = AnswerWriter(answer, to: exchange.method, number: number, via: sink, on: loop, application)
    try await writer.write(answer.body)
  }

  /// Performs the work for a request; without work, has the application begin it.
  private func perform(
    _ work: (@Sendable (Exchange) async throws -> Answer)?, _ exchange: Exchange
  ) async throws -> Answer {
    if let work { return try await work(exchange) }
    var exchange = exchange
    return try await application.begin(&exchange).answer(to: exchange)
  }
}

/// A request that a task answers.
struct RequestTask: Sendable {
  let exchange: Exchange
  /// Nil: the application has not begun it.
  let work: (@Sendable (Exchange) async throws -> Answer)?
}

/// Where a request waits for the connection's task, or the task for a request. Confined to the event loop.
struct Handover {
  private var request: RequestTask?
  private var taker: CheckedContinuation<RequestTask?, Never>?

  /// Returns the waiting request.
  mutating func take() -> RequestTask? {
    defer { request = nil }
    return request
  }

  /// Notes that the task waits for a request.
  mutating func wait(_ taker: CheckedContinuation<RequestTask?, Never>) { self.taker = taker }

  mutating func give(_ request: RequestTask) {
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
