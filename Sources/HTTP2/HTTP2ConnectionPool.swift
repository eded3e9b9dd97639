package import Logging
package import NIOCore
import Synchronization

/// A pool of HTTP/2 connections to one host, with a queue of requests.
///
/// Requests and completions are passed in batches: there is one hop between a caller's thread and a connection's event
/// loop per batch, and none per request. The pool works while `run()` runs; requests that are submitted earlier wait
/// for it.
package final class HTTP2ConnectionPool: Sendable {
  private struct Guarded {
    var pool: PoolState<ConnectionHandle>
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let guarded: Mutex<Guarded>
  private let settings: ClientConnectionSettings
  /// The event loop of the pool's timer, which also reports requests that never reached a connection.
  private let eventLoop: any EventLoop
  private let logger: Logger
  private let observer: (any HTTP2PoolObserver)?

  /// Throws `HTTP2ConnectionError` with `invalidConfiguration` if the configuration is invalid, and NIOSSL's error if
  /// TLS cannot be set up with it.
  package init(
    configuration: HTTP2PoolConfiguration, eventLoopGroup: any EventLoopGroup, logger: Logger,
    observer: (any HTTP2PoolObserver)? = nil
  ) throws {
    settings = try ClientConnectionSettings(configuration)
    eventLoop = eventLoopGroup.next()
    var logger = logger
    logger[metadataKey: LogKeys.host] = "\(configuration.host)"
    self.logger = logger
    self.observer = observer
    let state = PoolState(configuration: configuration) { ConnectionHandle(id: $0, eventLoop: eventLoopGroup.next()) }
    guarded = Mutex(Guarded(pool: state))
  }

  /// Opens connections and serves requests until `close(timeout:)` is done. Cancelling the task closes the pool with
  /// the configured `cancellationTimeout`.
  package func run() async {
    perform(transition { $0.start(now: .now()) })
    let ticks = eventLoop.scheduleRepeatedTask(initialDelay: settings.tickInterval, delay: settings.tickInterval) {
      [weak self] _ in
      guard let self else { return }
      perform(transition { $0.tick(now: .now()) })
    }
    await withTaskCancellationHandler {
      await finished()
    } onCancel: {
      beginClosing(timeout: settings.configuration.cancellationTimeout)
    }
    ticks.cancel()
  }

  /// Submits requests. Never blocks, and never calls `completion` before it returns.
  ///
  /// The end of every request is reported exactly once. `completion` is called on an event loop, with all requests of
  /// this submission that ended in one turn of that loop; it must be quick. Calls for requests on different connections
  /// may run concurrently. Bulk requests wait behind others when streams are scarce.
  ///
  /// Requests of different generations never share a connection. The first request of a later generation renews the
  /// connections, as `renewConnections()` does; requests of an earlier generation that are not in flight by then, or
  /// are submitted later, fail as `superseded`.
  package func submit(
    _ requests: [HTTP2Request], generation: Int = 0, completion: @escaping @Sendable ([HTTP2Completion]) -> Void
  ) {
    guard !requests.isEmpty else { return }
    let now = NIODeadline.now()
    let batches = RequestBatch.batches(
      of: requests, submission: Submission(generation: generation, completion: completion), submittedAt: now)
    let (rejected, actions, phase) = guarded.withLock { guarded in
      var (rejected, actions): ([RequestBatch], [PoolState<ConnectionHandle>.Action]) = ([], [])
      for batch in batches {
        let outcome = guarded.pool.submit(batch, now: now)
        rejected += outcome.rejected.map { [$0] } ?? []
        actions += outcome.actions
      }
      return (rejected, actions, guarded.pool.phase)
    }
    perform(actions)
    if !rejected.isEmpty {
      let isOpen = phase == .idle || phase == .running
      report(rejected, HTTP2RequestError(isOpen ? .queueFull : .closed, wasPossiblyProcessed: false))
    }
  }

  /// Sends one request and waits for its end. Cancelling the task does not cancel the request; its timeout limits the
  /// wait.
  package func execute(_ request: HTTP2Request) async throws -> HTTP2Response {
    let result: Result<HTTP2Response, HTTP2RequestError> = await withCheckedContinuation { continuation in
      submit([request]) { completions in
        for completion in completions { continuation.resume(returning: completion.result) }
      }
    }
    return try result.get()
  }

  /// Opens new connections for all further requests. The old ones finish their streams and close.
  package func renewConnections() { perform(transition { $0.renew(now: .now()) }) }

  /// The current numbers of the pool.
  package var statistics: HTTP2PoolStatistics { guarded.withLock { $0.pool.statistics } }

  /// Closes the pool. Waiting requests fail as `closed` at once, requests in flight when `timeout` has passed. Returns
  /// after all requests are reported and all connections have ended.
  package func close(timeout: Duration) async {
    beginClosing(timeout: timeout)
    await finished()
  }

  // MARK: Private

  private func transition<R: Sendable>(_ body: (inout PoolState<ConnectionHandle>) -> R) -> R {
    guarded.withLock { body(&$0.pool) }
  }

  private func beginClosing(timeout: Duration) {
    perform(transition { $0.beginClosing() })
    eventLoop.scheduleTask(in: TimeAmount(timeout)) { [weak self] in
      guard let self else { return }
      perform(transition { $0.abortAll() })
    }
  }

  private func finished() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isClosed = guarded.withLock { guarded in
        if guarded.pool.phase != .closed { guarded.waiters.append(continuation) }
        return guarded.pool.phase == .closed
      }
      if isClosed { resume([continuation]) }
    }
  }

  /// Resumes those who wait for the end: on the pool's event loop, behind the reports that are scheduled there.
  private func resume(_ waiters: [CheckedContinuation<Void, Never>]) {
    eventLoop.execute { for waiter in waiters { waiter.resume() } }
  }

  private func perform(_ actions: [PoolState<ConnectionHandle>.Action]) {
    for action in actions {
      switch action {
      case .connect(let handle): handle.connect(settings: settings, owner: self)
      case .wake(let handle): handle.wake()
      case .drain(let handle): handle.drain()
      case .abort(let handle): handle.abort()
      case .fail(let batches, let error): report(batches, error)
      case .finish:
        let waiters = guarded.withLock { guarded in
          defer { guarded.waiters = [] }
          return guarded.waiters
        }
        resume(waiters)
      }
    }
  }

  /// Reports requests that ended without a connection. On the pool's event loop, so that a submitter is never called
  /// back from inside its own call.
  private func report(_ batches: [RequestBatch], _ error: HTTP2RequestError) {
    eventLoop.execute {
      var collector = CompletionCollector()
      for batch in batches { collector.add(error, for: batch) }
      collector.deliver()
    }
  }
}

extension HTTP2ConnectionPool: ClientConnectionOwner {
  func opened(_ id: Int, streamLimit: Int) {
    logger.debug("Connection opened", metadata: [LogKeys.connection: "\(id)", LogKeys.streamLimit: "\(streamLimit)"])
    observer?.pool(settings.configuration.host, didObserve: .opened(connection: id, streamLimit: streamLimit))
    perform(transition { $0.opened(id: id, streamLimit: streamLimit, now: .now()) })
  }

  func take(_ id: Int, openStreams: Int, streamLimit: Int, mayTake: Bool, now: NIODeadline) -> (
    batches: [RequestBatch], more: Bool
  ) {
    transition { $0.take(id: id, openStreams: openStreams, streamLimit: streamLimit, mayTake: mayTake, now: now) }
  }

  func answered(_ id: Int) { transition { $0.answered(id: id) } }

  func requeue(_ id: Int, first: [RequestBatch], last: [RequestBatch]) {
    let count = (first + last).reduce(0) { $0 + $1.requests.count }
    observe(.resending(connection: id, count: count))
    perform(transition { $0.requeue(first: first, last: last, now: .now()) })
  }

  func draining(_ id: Int, isFailure: Bool) {
    perform(transition { $0.draining(id: id, isFailure: isFailure, now: .now()) })
  }

  func ended(_ id: Int, wasOpened: Bool, isFailure: Bool, error: HTTP2ConnectionError?) {
    let (pause, actions) = transition { $0.ended(id: id, isFailure: isFailure, error: error, now: .now()) }
    if wasOpened {
      logger.debug(
        "Connection closed",
        metadata: [LogKeys.connection: "\(id)", LogKeys.error: "\(error.map(\.description) ?? "none")"])
      observe(.closed(connection: id, error: error))
    } else if let error {
      logger.info(
        "Connection failed",
        metadata: [
          LogKeys.connection: "\(id)", LogKeys.error: "\(error)",
          LogKeys.nextAttemptIn: "\(pause.nanoseconds / 1_000_000) ms",
        ])
      observe(.failed(connection: id, error: error, nextAttemptIn: .nanoseconds(pause.nanoseconds)))
    }
    perform(actions)
  }

  func observe(_ event: HTTP2PoolEvent) {
    if case .goAway(let connection, let code, let lastStreamID, _) = event {
      logger.info(
        "Server sent GOAWAY",
        metadata: [
          LogKeys.connection: "\(connection)", LogKeys.errorCode: "\(code)", LogKeys.lastStreamID: "\(lastStreamID)",
        ])
    }
    observer?.pool(settings.configuration.host, didObserve: event)
  }
}
