package import GRDB

/// A connection of a store, within a transaction or a read. It must not escape the block that it is lent to.
///
/// Each statement is prepared once per connection. A closure that reads rows must not run the same statement.
package struct Session {
  package enum Engine {
    case sqlite(Database)
    case postgreSQL(PostgreSQLConnection)
  }

  /// For what only one engine has.
  package let engine: Engine

  package init(_ engine: Engine) { self.engine = engine }

  /// Whether transactions run side by side, so that rows must be locked.
  package var hasRowLocks: Bool {
    if case .postgreSQL = engine { true } else { false }
  }

  /// Reads all rows of a statement.
  package func all<Element>(
    _ statement: PreparedStatement, _ values: [Value] = [], _ read: (Row) throws -> Element
  ) throws -> [Element] {
    switch engine {
    case .sqlite(let db):
      return try rows(db, statement, values, most: .max, read)
    case .postgreSQL(let connection):
      let rows = try connection.query(statement, values.map { Parameter($0) })
      return try (0..<rows.count).map { try read(Row(rows, $0)) }
    }
  }

  /// Reads the first row of a statement; nil without one.
  package func first<Element>(
    _ statement: PreparedStatement, _ values: [Value] = [], _ read: (Row) throws -> Element
  ) throws -> Element? {
    switch engine {
    case .sqlite(let db): return try rows(db, statement, values, most: 1, read).first
    case .postgreSQL(let connection):
      let rows = try connection.query(statement, values.map { Parameter($0) })
      return rows.count == 0 ? nil : try read(Row(rows, 0))
    }
  }

  /// Runs a statement that returns no rows. Returns the number of rows that it has inserted, updated or deleted.
  @discardableResult
  package func run(_ statement: PreparedStatement, _ values: [Value] = []) throws -> Int {
    switch engine {
    case .sqlite(let db): return try run(db, db.cachedStatement(sql: statement.sqlite), values)
    case .postgreSQL(let connection): return try connection.query(statement, values.map { Parameter($0) }).affected
    }
  }

  /// Runs a statement once for each of the lists of values, in their order. PostgreSQL gets them in one round trip.
  package func run(_ statement: PreparedStatement, each lists: [[Value]]) throws {
    guard !lists.isEmpty else { return }
    switch engine {
    case .sqlite(let db):
      let prepared = try db.cachedStatement(sql: statement.sqlite)
      for values in lists { _ = try run(db, prepared, values) }
    case .postgreSQL(let connection):
      _ = try connection.query(statement, each: lists.map { $0.map { Parameter($0) } })
    }
  }

  /// Reads the first row for each of the lists of values. PostgreSQL gets them in one round trip.
  package func first<Element>(
    _ statement: PreparedStatement, each lists: [[Value]], _ read: (Row) throws -> Element
  ) throws -> [Element?] {
    switch engine {
    case .sqlite: return try lists.map { try first(statement, $0, read) }
    case .postgreSQL(let connection):
      return try connection.query(statement, each: lists.map { $0.map { Parameter($0) } })
        .map { $0.count == 0 ? nil : try read(Row($0, 0)) }
    }
  }

  /// Reads the rows of a statement whose last parameter, in `= ANY (?n)`, stands for one of the elements. They are of
  /// one kind: texts, integers or UUIDs. SQLite runs it for each, which costs little more than the search in the index.
  package func all<Element>(
    _ statement: PreparedStatement, _ values: [Value], any elements: [Value], _ read: (Row) throws -> Element
  ) throws -> [Element] {
    guard !elements.isEmpty else { return [] }
    switch engine {
    case .sqlite: return try elements.flatMap { try all(statement, values + [$0], read) }
    case .postgreSQL(let connection):
      let rows = try connection.query(statement, values.map { Parameter($0) } + [Parameter(any: elements)])
      return try (0..<rows.count).map { try read(Row(rows, $0)) }
    }
  }

  /// Runs a statement for each of the elements; as `all`. Returns the number of changed rows.
  @discardableResult
  package func run(_ statement: PreparedStatement, _ values: [Value], any elements: [Value]) throws -> Int {
    guard !elements.isEmpty else { return 0 }
    switch engine {
    case .sqlite: return try elements.reduce(0) { try $0 + run(statement, values + [$1]) }
    case .postgreSQL(let connection):
      return try connection.query(statement, values.map { Parameter($0) } + [Parameter(any: elements)]).affected
    }
  }

  /// Runs statements separated by semicolons, which are not prepared.
  package func script(_ sql: String) throws {
    switch engine {
    case .sqlite(let db): try db.execute(sql: sql)
    case .postgreSQL(let connection): try connection.executeScript(sql)
    }
  }

  private func rows<Element>(
    _ db: Database, _ statement: PreparedStatement, _ values: [Value], most: Int, _ read: (Row) throws -> Element
  ) throws -> [Element] {
    let prepared = try db.cachedStatement(sql: statement.sqlite)
    try prepared.bind(values)
    // GRDB's cursor, because a cancelled read must end with an error.
    let cursor = try GRDB.Row.fetchCursor(prepared)
    // Its release resets the statement.
    defer { withExtendedLifetime(cursor) {} }
    let row = Row(of: prepared)
    var elements: [Element] = []
    while elements.count < most, try cursor.next() != nil { elements.append(try read(row)) }
    return elements
  }

  private func run(_ db: Database, _ prepared: Statement, _ values: [Value]) throws -> Int {
    try prepared.bind(values)
    try prepared.execute()
    return db.changesCount
  }
}
