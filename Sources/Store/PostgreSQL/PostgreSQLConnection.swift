/// A session with the database. A ``PostgreSQLPool`` lends it to a block, which runs on a thread that may block.
///
/// It must not escape the block. After an error within a transaction every statement fails until the transaction ends.
package final class PostgreSQLConnection {
  private let handle: ConnectionHandle
  private let timeout: Duration
  private var prepared: Set<Int> = []
  private var isLost = false
  /// From this moment on a read-only error (25006) closes the connection.
  private let replaceableFrom: ContinuousClock.Instant

  init(handle: ConnectionHandle, timeout: Duration, replacementInterval: Duration) {
    self.handle = handle
    self.timeout = timeout
    replaceableFrom = .now + replacementInterval
  }

  /// Whether another job can use it: the connection works, and no transaction is open.
  var isReusable: Bool { !isLost && !handle.isBroken && !handle.isInTransaction }

  /// Whether the server has closed the idle connection, or is about to.
  func isStale() -> Bool { handle.isStale() }

  /// Runs a prepared statement in one round trip; the first time on a connection it is prepared, which takes another.
  @discardableResult
  package func query(_ statement: PreparedStatement, _ parameters: [Parameter] = []) throws(PostgreSQLError)
    -> ResultRows
  {
    try tracked { () throws(PostgreSQLError) in
      let name = try prepare(statement, for: parameters)
      return try handle.run(.prepared(name), parameters, deadline: deadline)
    }
  }

  /// Runs a prepared statement for each of the lists of parameters, in their order and in one round trip for some
  /// hundred of them. After an error the others are not run. Call it within a transaction.
  @discardableResult
  package func query(_ statement: PreparedStatement, each lists: [[Parameter]]) throws(PostgreSQLError) -> [ResultRows]
  {
    guard let first = lists.first else { return [] }
    return try tracked { () throws(PostgreSQLError) in
      let name = try prepare(statement, for: first)
      var results: [ResultRows] = []
      results.reserveCapacity(lists.count)
      for start in stride(from: 0, to: lists.count, by: Self.pipelineLength) {
        let part = lists[start..<min(start + Self.pipelineLength, lists.count)]
        results += try handle.run(prepared: name, each: part, deadline: deadline)
      }
      return results
    }
  }

  /// The most statements that are sent before their results are read.
  private static let pipelineLength = 500

  /// Prepares the statement at its first use. Returns its name.
  private func prepare(_ statement: PreparedStatement, for parameters: [Parameter]) throws(PostgreSQLError) -> String {
    let name = "s\(statement.number)"
    if !prepared.contains(statement.number) {
      try handle.prepare(name, statement.sql, types: parameters.map(\.oid), deadline: deadline)
      prepared.insert(statement.number)
    }
    return name
  }

  /// Runs one statement without preparing it. The server plans it for these parameter values.
  @discardableResult
  package func execute(_ sql: String, _ parameters: [Parameter] = []) throws(PostgreSQLError) -> ResultRows {
    try tracked { () throws(PostgreSQLError) in try handle.run(.once(sql), parameters, deadline: deadline) }
  }

  /// Runs statements separated by semicolons, as one transaction unless they contain transaction commands.
  ///
  /// A `timeout` longer than the pool's also needs `SET LOCAL statement_timeout` before.
  package func executeScript(_ sql: String, timeout: Duration? = nil) throws(PostgreSQLError) {
    try tracked { () throws(PostgreSQLError) in
      try handle.executeScript(sql, deadline: .now + (timeout ?? self.timeout))
    }
  }

  /// Runs a `COPY … FROM STDIN (FORMAT binary)` with the rows that the closure writes. Returns the number of rows.
  ///
  /// When the closure throws, no row is stored. The `statement_timeout` limits the whole copy: a long one needs
  /// `SET statement_timeout = 0` before.
  package func copyIn(_ sql: String, _ body: (inout CopyWriter) throws -> Void) throws -> Int {
    try tracked { () throws(PostgreSQLError) in try handle.beginCopy(sql, deadline: deadline) }
    var writer = CopyWriter { [handle, timeout] piece in try handle.send(piece, deadline: .now + timeout) }
    do {
      try body(&writer)
      try writer.finish()
    } catch {
      if (error as? PostgreSQLError)?.isConnectionLost == true {
        isLost = true
      } else {
        // The server answers an abandoned copy with an error; that is expected.
        do { _ = try handle.endCopy(abandoning: true, deadline: deadline) } catch  where !error.isConnectionLost {
        } catch {
          isLost = true
        }
      }
      throw error
    }
    return try tracked { () throws(PostgreSQLError) in try handle.endCopy(abandoning: false, deadline: deadline) }
  }

  /// Runs a `COPY … TO STDOUT` and passes each piece to the closure: in text format one row with its newline.
  ///
  /// When the closure throws, the connection is closed, because the rest of the rows is still being sent.
  package func copyOut(_ sql: String, _ body: ([UInt8]) throws -> Void) throws {
    try tracked { () throws(PostgreSQLError) in try handle.beginCopy(sql, deadline: deadline) }
    do {
      while let piece = try handle.receive(deadline: deadline) { try body(piece) }
    } catch {
      isLost = true
      throw error
    }
  }

  /// The end of the client's wait: later than the server's own `statement_timeout`.
  private var deadline: ContinuousClock.Instant { .now + timeout }

  private func tracked<Value>(_ body: () throws(PostgreSQLError) -> Value) throws(PostgreSQLError) -> Value {
    do throws(PostgreSQLError) {
      return try body()
    } catch {
      var error = error
      // 25006, read-only: the server may be a demoted primary whose host name already leads to its successor, which
      // only a new connection finds out. Not at once: a primary with a full disk would be reconnected all the time.
      if error.sqlState == "25006", replaceableFrom <= .now { error.isConnectionLost = true }
      if error.isConnectionLost { isLost = true }
      throw error
    }
  }
}
