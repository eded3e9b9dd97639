import Foundation
package import PostgreSQL

/// A transaction that holds a lock until the test lets it go, so that what runs beside it gets into the moment that is
/// meant.
package final class HeldLock: Sendable {
  private let pool: PostgreSQLPool
  private let mayEnd: DispatchSemaphore
  private let holder: Task<Void, any Error>

  /// Returns when a connection of the pool has executed the statement. Before it commits it executes `last`, where
  /// there is any. Throws what the server says to the statement.
  package init(_ statement: String, in pool: PostgreSQLPool, last: [String] = []) async throws {
    self.pool = pool
    let (statements, executed) = AsyncStream.makeStream(of: Void.self)
    let mayEnd = DispatchSemaphore(value: 0)
    self.mayEnd = mayEnd
    holder = Task {
      defer { executed.finish() }
      try await pool.transaction { connection in
        _ = try connection.execute(statement)
        executed.yield()
        executed.finish()
        // A transaction may be repeated.
        mayEnd.wait()
        mayEnd.signal()
        for statement in last { _ = try connection.execute(statement) }
      }
    }
    var isHeld = false
    for await _ in statements { isHeld = true }
    if !isHeld { try await holder.value }
  }

  /// Returns when so many of the test's connections wait for a lock.
  package func isAwaited(by count: Int64 = 1) async throws {
    let waiting = """
      SELECT count(*) FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND application_name = current_setting('application_name')
      """
    while try await pool.read({ try $0.execute(waiting).integer(0, 0) }) < count { await Task.yield() }
  }

  /// Lets the transaction go on. A test that fails half-way must, or those that wait for it keep the test waiting for
  /// them.
  package func letGo() { mayEnd.signal() }

  /// Returns when the transaction is committed. Throws what the server says to its last statements.
  package func release() async throws {
    letGo()
    try await holder.value
  }
}
