import Dispatch
package import Logging
import Synchronization

/// A bounded number of connections to one database, for any task at any time.
///
/// Each connection has a thread of its own, on which the block of whoever has borrowed it runs: a block may wait for
/// the server, and never holds up the cooperative pool. Connections are made when they are needed, kept, and replaced
/// when they break, more and more slowly while the server cannot be reached. Every wait is bounded: for a connection,
/// for connecting, for an answer.
package final class PostgreSQLPool: Sendable {
  private let configuration: PostgreSQLConfiguration
  private let words: [String: String]
  private let logger: Logger
  private let state: Mutex<PoolState>
  private let reconnection = Mutex(Reconnection())
  private let jobNumber = Atomic<UInt64>(0)

  /// Checks the configuration; connects to nothing yet. Throws `configuration`.
  package init(_ configuration: PostgreSQLConfiguration, logger: Logger) throws(PostgreSQLError) {
    self.configuration = configuration
    self.logger = logger
    words = try configuration.words()
    state = Mutex(
      PoolState(maximumSlots: configuration.maximumConnections, maximumWaiting: configuration.maximumWaiting))
  }

  deinit {
    close()
  }

  /// Runs a block of single statements, each of which is a transaction of its own. Never done again: what was done on a
  /// connection that broke is unknown.
  package func withConnection<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await run { [self] slot in try attempt(on: slot, again: { _ in false }, body) }
  }

  /// Runs a block that changes nothing. Done again, once, when the connection broke.
  package func read<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await run { [self] slot in try attempt(on: slot, again: { _ in true }, body) }
  }

  /// Runs a block as one transaction: when this has returned it is durable, and when it throws it has not happened,
  /// unless the error says that this is unknown.
  ///
  /// It is begun anew when the server gave it up for others (40001, 40P01) or the block threw
  /// ``PostgreSQLError/overtaken``, and, once, when the connection broke before the commit: so the block must do
  /// nothing but talk to the database.
  package func transaction<Value: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
  ) async throws -> Value {
    try await run { [self] slot in
      var repetition = 0
      while true {
        do {
          return try attempt(on: slot, again: { !$0.isOutcomeUnknown }) { connection in
            try Self.transact(connection, body)
          }
        } catch let error as PostgreSQLError where error.isRepeatable && repetition < configuration.maximumRepetitions {
          repetition += 1
          // Whoever collided comes again at another moment.
          Pause.upTo(milliseconds: 2 << min(repetition, 6))
        }
      }
    }
  }

  /// Throws when the database does not answer now.
  package func check() async throws {
    try await read { connection in _ = try connection.query(Self.nothing) }
  }

  /// Closes all connections as they become free; every later call throws.
  package func close() {
    let (jobs, slots) = state.withLock { $0.close() }
    for job in jobs { job.refuse(Self.closed) }
    for slot in slots { slot.close() }
  }

  private static let nothing = PreparedStatement("SELECT 1")
  private static let closed = PostgreSQLError(.unavailable, hint: "the connections are closed")

  private static func transact<Value>(
    _ connection: PostgreSQLConnection, _ body: (PostgreSQLConnection) throws -> Value
  ) throws -> Value {
    try connection.execute("BEGIN")
    let value: Value
    do { value = try body(connection) } catch {
      // Where this does not work the connection is thrown away, and the transaction with it.
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

  /// Runs the body with the slot's connection, and again with a new one where that one was lost and `again` says that
  /// nothing speaks against it.
  private func attempt<Value: Sendable>(
    on slot: Slot, again: (PostgreSQLError) -> Bool, _ body: (PostgreSQLConnection) throws -> Value
  ) throws -> Value {
    var mayRepeat = false
    do {
      defer { slot.tidy() }
      return try slot.withConnection(connect: connect) { connection in
        do { return try body(connection) } catch let error as PostgreSQLError where error.isConnectionLost {
          mayRepeat = again(error)
          throw error
        }
      }
    } catch let error as PostgreSQLError where error.isConnectionLost && !error.isTimeout && mayRepeat {
      defer { slot.tidy() }
      return try slot.withConnection(connect: connect, body)
    }
  }

  private func connect() throws -> sending PostgreSQLConnection {
    let deadline = ContinuousClock.now + configuration.waitLimit
    // Looked at again after each pause: another attempt may have failed meanwhile.
    while let notBefore = reconnection.withLock({ $0.notBefore }), notBefore > .now {
      // Whoever would wait too long is told at once.
      guard notBefore <= deadline else { throw PostgreSQLError(.unavailable, hint: "no connection") }
      Pause.until(notBefore)
    }
    do {
      var reason = ""
      let start = ContinuousClock.now
      let handle: ConnectionHandle
      do { handle = try ConnectionHandle(words) { reason = $0 } } catch {
        let (counts, failures) = reconnection.withLock { state in
          (state.failed(begunAt: start, at: .now, random: .random(in: 0...1)), state.failures)
        }
        if let password = words["password"], !password.isEmpty {
          reason = reason.split(separator: password).joined(separator: "…")
        }
        // An outage is told when it begins, and then less and less often.
        if counts, failures.nonzeroBitCount == 1 {
          logger.warning(
            "Cannot connect to PostgreSQL",
            metadata: [LogKeys.error: "\(error)", LogKeys.reason: "\(reason)", LogKeys.failures: "\(failures)"])
        }
        throw error
      }
      let failures = reconnection.withLock { state in
        defer { state.succeeded() }
        return state.failures
      }
      if failures > 0 { logger.notice("PostgreSQL can be reached again", metadata: [LogKeys.failures: "\(failures)"]) }
      // The server breaks off a statement by itself; only where it does not even do that, the connection is given up.
      return PostgreSQLConnection(
        handle: handle, timeout: configuration.statementTimeout + .seconds(2),
        replacementInterval: configuration.replacementInterval)
    }
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
    case .refuse: job.refuse(PostgreSQLError(.unavailable, hint: "too many wait for a connection"))
    case .closed: job.refuse(Self.closed)
    }
  }

  /// Does the job, and then what waits, until nothing does.
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
