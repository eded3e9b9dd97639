import Foundation
package import Store

/// A transaction that holds a lock until the test releases it, so that concurrent transactions wait at a known point.
package final class HeldLock: Sendable {
  private let pool: PostgreSQLPool
  private let mayEnd: DispatchSemaphore
  private let holder: Task<Void, any Error>

  /// Begins a transaction and executes the statement; `last` is executed before the commit. Throws the statement's
  /// error.
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
        // Signalled again, because the pool may repeat the transaction.
        mayEnd.wait()
        mayEnd.signal()
        for statement in last { _ = try connection.execute(statement) }
      }
    }
    var isHeld = false
    for await _ in statements { isHeld = true }
    if !isHeld { try await holder.value }
  }

  /// Returns when `count` connections of the test wait for a lock.
  package func waitUntilAwaited(by count: Int64 = 1) async throws {
    let waiting = """
      SELECT count(*) FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND application_name = current_setting('application_name')
      """
    while try await pool.read({ try $0.execute(waiting).integer(0, 0) }) < count { await Task.yield() }
  }

  /// Lets the transaction commit, without waiting for it. A test calls it in a `defer` as well: if the test fails, the
  /// tasks that wait for the lock have to end.
  package func allowRelease() { mayEnd.signal() }

  /// Lets the transaction commit and waits for it. Throws the error of its last statements.
  package func release() async throws {
    allowRelease()
    try await holder.value
  }
}
