import Dispatch
package import Logging
import Synchronization

/// A bounded pool of connections to one database; thread-safe.
///
/// Each connection has its own thread, on which the callers' blocks run: a block may wait for the server without
/// blocking the cooperative pool. Connections are opened on demand, kept, and replaced when they break, with
/// exponential backoff. Every wait is bounded: for a free connection, for connecting, for an answer.
package final class PostgreSQLPool: Sendable {
  private let configuration: PostgreSQLConfiguration
  private let parameters: [String: String]
  private let logger: Logger
  private let state: Mutex<PoolState>
  private let backoff = Mutex(ReconnectBackoff())
  private let jobNumber = Atomic<UInt64>(0)

  /// Checks the configuration without connecting. Throws `configuration`.
  package init(_ configuration: PostgreSQLConfiguration, logger: Logger) throws(PostgreSQLError) {
    self.configuration = configuration
    self.logger = logger
    parameters = try configuration.parameters()
    state = Mutex(
      PoolState(maximumSlots: configuration.maximumConnections, maximumWaiting: configuration.maximumWaiting))
  }

  deinit {
    close()
  }

  /// Runs a block in which each statement is its own transaction. Never retried: when the connection breaks, it is
  /// unknown which statements took effect.
  package func withConnection<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await run { [self] slot in try attempt(on: slot, mayRetry: { _ in false }, body) }
  }

  /// Runs a block that only reads. Retried once when the connection breaks.
  package func read<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await run { [self] slot in try attempt(on: slot, mayRetry: { _ in true }, body) }
  }

  /// Runs a block as one transaction. It is durable when this returns and rolled back when this throws, unless the
  /// error has `isOutcomeUnknown`.
  ///
  /// Retried after a serialization failure or deadlock (40001, 40P01) or ``StoreError/overtaken``, and once when the
  /// connection breaks before the commit: so the block must have no effects outside the database.
  package func transaction<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await run { [self] slot in
      var repetition = 0
      while true {
        do {
          return try attempt(on: slot, mayRetry: { !$0.isOutcomeUnknown }) { connection in
            try Self.transact(connection, body)
          }
        } catch  where Self.isRepeatable(error) && repetition < configuration.maximumRepetitions {
          repetition += 1
          // A random pause: transactions that collided must not collide again.
          Pause.upTo(milliseconds: 2 << min(repetition, 6))
        }
      }
    }
  }

  /// Throws when the database does not answer.
  package func check() async throws {
    try await read { connection in _ = try connection.query(Self.probe) }
  }

  /// Closes the pool: every later call throws, and busy connections are closed after their job.
  package func close() {
    let (jobs, slots) = state.withLock { $0.close() }
    for job in jobs { job.refuse(Self.closed) }
    for slot in slots { slot.close() }
  }

  private static func isRepeatable(_ error: any Error) -> Bool {
    (error as? PostgreSQLError)?.isRepeatable ?? (error as? StoreError == .overtaken)
  }

  private static let probe = PreparedStatement("SELECT 1")
  private static let closed = PostgreSQLError(.unavailable, hint: "the connection pool is closed")

  private static func transact<Value>(
    _ connection: PostgreSQLConnection, _ body: (PostgreSQLConnection) throws -> Value
  ) throws -> Value {
    try connection.execute("BEGIN")
    let value: Value
    do { value = try body(connection) } catch {
      // If the rollback fails, `tidy` closes the connection, which ends the transaction as well.
      do { try connection.execute("ROLLBACK") } catch {}
      throw error
    }
    do { try connection.execute("COMMIT") } catch {
      var error = error
      error.isOutcomeUnknown = error.isConnectionLost
      throw error
    }
    return value
  }

  /// Runs the body with the slot's connection. Retries it once on a new connection when the first was lost, `mayRetry`
  /// allows it and the server did not time out.
  private func attempt<Value: Sendable>(
    on slot: Slot, mayRetry: (PostgreSQLError) -> Bool, _ body: (PostgreSQLConnection) throws -> Value
  ) throws -> Value {
    var isRetryAllowed = false
    do {
      defer { slot.tidy() }
      return try slot.withConnection(connect: connect) { connection in
        do { return try body(connection) } catch let error as PostgreSQLError where error.isConnectionLost {
          isRetryAllowed = mayRetry(error)
          throw error
        }
      }
    } catch let error as PostgreSQLError where error.isConnectionLost && !error.isTimeout && isRetryAllowed {
      defer { slot.tidy() }
      return try slot.withConnection(connect: connect, body)
    }
  }

  private func connect() throws -> sending PostgreSQLConnection {
    let deadline = ContinuousClock.now + configuration.waitLimit
    // Checked again after each pause: an attempt on another slot may have failed meanwhile.
    while let notBefore = backoff.withLock({ $0.notBefore }), notBefore > .now {
      // Fail at once when the backoff ends after the caller's deadline.
      guard notBefore <= deadline else { throw PostgreSQLError(.unavailable, hint: "no connection") }
      Pause.until(notBefore)
    }
    var reason = ""
    let start = ContinuousClock.now
    let handle: ConnectionHandle
    do { handle = try ConnectionHandle(parameters) { reason = $0 } } catch {
      let (counts, failures) = backoff.withLock { state in
        (state.failed(begunAt: start, at: .now, random: .random(in: 0...1)), state.failures)
      }
      if let password = parameters["password"], !password.isEmpty {
        reason = reason.split(separator: password).joined(separator: "…")
      }
      // Logged at the 1st, 2nd, 4th, 8th … failure of an outage.
      if counts, failures.nonzeroBitCount == 1 {
        logger.warning(
          "Cannot connect to PostgreSQL",
          metadata: [LogKeys.error: "\(error)", LogKeys.reason: "\(reason)", LogKeys.failures: "\(failures)"])
      }
      throw error
    }
    let failures = backoff.withLock { state in
      defer { state.succeeded() }
      return state.failures
    }
    if failures > 0 { logger.notice("Connected to PostgreSQL again", metadata: [LogKeys.failures: "\(failures)"]) }
    // The server cancels a slow statement itself; two seconds later the client treats the connection as lost.
    return PostgreSQLConnection(
      handle: handle, timeout: configuration.statementTimeout + .seconds(2),
      replacementInterval: configuration.replacementInterval)
  }

  private func run<Value: Sendable>(_ body: @escaping @Sendable (Slot) throws -> Value) async throws -> Value {
    let number = jobNumber.wrappingAdd(1, ordering: .relaxed).newValue
    return try await withTaskCancellationHandler {
      try Task.checkCancellation()
      return try await withCheckedThrowingContinuation { continuation in
        submit(
          Job(
            number: number, deadline: .now + configuration.waitLimit,
            perform: { slot in continuation.resume(with: Result { try body(slot) }) },
            refuse: { continuation.resume(throwing: $0) }))
      }
    } onCancel: {
      state.withLock { $0.withdraw(number) }?.refuse(CancellationError())
    }
  }

  private func submit(_ job: Job) {
    switch state.withLock({ $0.admit(job) }) {
    case .start(let slot): slot.queue.async { [self] in work(on: slot, from: job) }
    case .wait(let deadline): if let deadline { watch(until: deadline) }
    case .refuse: job.refuse(PostgreSQLError(.unavailable, hint: "too many callers wait for a connection"))
    case .closed: job.refuse(Self.closed)
    }
  }

  /// Runs the job and then queued jobs, until the queue is empty.
  private func work(on slot: Slot, from first: Job) {
    var next: Job? = first
    while let job = next {
      job.perform(slot)
      next = state.withLock { $0.release(slot) }
    }
  }

  private func watch(until deadline: ContinuousClock.Instant) {
    let rest = max(.zero, deadline - .now)
    DispatchQueue.global().asyncAfter(deadline: .now() + rest / .seconds(1)) { [weak self] in
      guard let self else { return }
      let (expired, next) = state.withLock { $0.expire(at: .now) }
      for job in expired { job.refuse(PostgreSQLError(.unavailable, hint: "no connection became free in time")) }
      if let next { watch(until: next) }
    }
  }
}
