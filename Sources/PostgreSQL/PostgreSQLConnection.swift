/// One session with the database, lent by a ``PostgreSQLPool`` to a block of code that runs on a thread which may wait.
///
/// Not to be kept after the block has returned.
package final class PostgreSQLConnection {
  private let handle: ConnectionHandle
  private let timeout: Duration
  private var prepared: Set<Int> = []
  private var isLost = false
  /// From when on an answer that the server takes no changes is the end of this connection.
  private let staysUntil: ContinuousClock.Instant

  init(handle: ConnectionHandle, timeout: Duration, replacementInterval: Duration) {
    self.handle = handle
    self.timeout = timeout
    staysUntil = .now + replacementInterval
  }

  /// Whether the next user can have it: it works, and the last one has left no transaction open.
  var isReusable: Bool { !isLost && !handle.isBroken && !handle.isInTransaction }

  /// Whether the server has gone away in the meantime.
  func isStale() -> Bool { handle.isStale() }

  /// Runs a statement, which is prepared when this connection meets it first: one round trip from then on, two before.
  ///
  /// A transaction in which something has thrown does nothing any more but end.
  @discardableResult
  package func query(_ statement: PreparedStatement, _ parameters: [Parameter] = []) throws(PostgreSQLError)
    -> ResultRows
  {
    try spoken { () throws(PostgreSQLError) in
      let name = "s\(statement.number)"
      if !prepared.contains(statement.number) {
        try handle.prepare(name, statement.sql, types: parameters.map(\.oid), deadline: deadline)
        prepared.insert(statement.number)
      }
      return try handle.run(.prepared(name), parameters, deadline: deadline)
    }
  }

  /// Runs one statement that is not worth preparing, or cannot be; it is planned for the values of its parameters.
  @discardableResult
  package func execute(_ sql: String, _ parameters: [Parameter] = []) throws(PostgreSQLError) -> ResultRows {
    try spoken { () throws(PostgreSQLError) in try handle.run(.once(sql), parameters, deadline: deadline) }
  }

  /// Runs any number of statements, separated by semicolons; all of them or none, unless they say otherwise. May take
  /// as long as given, which the server must have been told (`SET LOCAL statement_timeout`).
  package func executeScript(_ sql: String, timeout: Duration? = nil) throws(PostgreSQLError) {
    try spoken { () throws(PostgreSQLError) in try handle.executeScript(sql, deadline: .now + (timeout ?? self.timeout))
    }
  }

  /// Runs a `COPY … FROM STDIN (FORMAT binary)` with the rows that the closure writes, and gives their number. When the
  /// closure throws, none of the rows is there. A `statement_timeout` counts for the whole of it: a long one needs `SET
  /// statement_timeout = 0` before.
  package func copyIn(_ sql: String, _ body: (inout CopyWriter) throws -> Void) throws -> Int {
    try spoken { () throws(PostgreSQLError) in try handle.beginCopy(sql, deadline: deadline) }
    var writer = CopyWriter { [handle, timeout] piece in try handle.send(piece, deadline: .now + timeout) }
    do {
      try body(&writer)
      try writer.finish()
    } catch {
      if (error as? PostgreSQLError)?.isConnectionLost == true {
        isLost = true
      } else {
        // The answer to this is the error that was asked for.
        do { _ = try handle.endCopy(abandoning: true, deadline: deadline) } catch  where !error.isConnectionLost {
        } catch {
          isLost = true
        }
      }
      throw error
    }
    return try spoken { () throws(PostgreSQLError) in try handle.endCopy(abandoning: false, deadline: deadline) }
  }

  /// Runs a `COPY … TO STDOUT` and hands over its pieces as they come: in the text format one row each, its newline
  /// included. When the closure throws, the connection is given up, since the rest of the rows is on its way.
  package func copyOut(_ sql: String, _ body: ([UInt8]) throws -> Void) throws {
    try spoken { () throws(PostgreSQLError) in try handle.beginCopy(sql, deadline: deadline) }
    do {
      while let piece = try handle.receive(deadline: deadline) { try body(piece) }
    } catch {
      isLost = true
      throw error
    }
  }

  /// The time by which the server has kept or broken its own limit.
  private var deadline: ContinuousClock.Instant { .now + timeout }

  private func spoken<Value>(_ body: () throws(PostgreSQLError) -> Value) throws(PostgreSQLError) -> Value {
    do throws(PostgreSQLError) {
      return try body()
    } catch {
      var error = error
      // It may be the primary of yesterday, and its name lead to another one already: only a new connection finds out.
      // Where it is the same again, as a primary without disk is, nothing is gained by asking at once.
      if error.sqlState == "25006", staysUntil <= .now { error.isConnectionLost = true }
      if error.isConnectionLost { isLost = true }
      throw error
    }
  }
}
