package import FanfareCore
package import GRDB

/// A row of a result, valid within the closure that gets it. Columns are counted from 0.
///
/// A value of another type than expected, or an unexpected NULL, throws `StoreError.mismatch` or `PostgreSQLError`.
package struct Row {
  private enum Source {
    case sqlite(Statement)
    case postgreSQL(ResultRows, Int)
  }

  private let source: Source

  /// The present row of a cursor over the statement.
  package init(of statement: Statement) { source = .sqlite(statement) }

  package init(_ rows: ResultRows, _ number: Int) { source = .postgreSQL(rows, number) }

  package func isNull(_ column: Int32) -> Bool {
    switch source {
    case .sqlite(let statement): statement.isNull(at: column)
    case .postgreSQL(let rows, let row): rows.isNull(row, column)
    }
  }

  package func text(_ column: Int32) throws -> String {
    switch source {
    case .sqlite(let statement): try statement.text(at: column)
    case .postgreSQL(let rows, let row): try rows.text(row, column)
    }
  }

  package func integer(_ column: Int32) throws -> Int64 {
    switch source {
    case .sqlite(let statement): try statement.integer(at: column)
    case .postgreSQL(let rows, let row): try rows.integer(row, column)
    }
  }

  package func bool(_ column: Int32) throws -> Bool {
    switch source {
    case .sqlite(let statement): try statement.integer(at: column) != 0
    case .postgreSQL(let rows, let row): try rows.bool(row, column)
    }
  }

  package func bytes(_ column: Int32) throws -> [UInt8] {
    switch source {
    case .sqlite(let statement): try statement.bytes(at: column)
    case .postgreSQL(let rows, let row): try rows.raw(row, column)
    }
  }

  package func id<Subject>(_ column: Int32) throws -> Identifier<Subject> {
    let words =
      switch source {
      case .sqlite(let statement): try statement.uuid(at: column)
      case .postgreSQL(let rows, let row): try rows.uuid(row, column)
      }
    return Identifier(high: words.high, low: words.low)
  }

  /// A `text[]`.
  package func texts(_ column: Int32) throws -> [String] {
    switch source {
    case .sqlite(let statement):
      // Split by bytes: to find characters costs many times as much, and a page has thousands of texts.
      try statement.text(at: column).utf8.split(separator: UInt8(ascii: "\n")).map { String(Substring($0)) }
    case .postgreSQL(let rows, let row): try rows.texts(row, column)
    }
  }

  package func int(_ column: Int32) throws -> Int { Int(try integer(column)) }

  package func optionalText(_ column: Int32) throws -> String? { isNull(column) ? nil : try text(column) }

  package func optionalInteger(_ column: Int32) throws -> Int64? { isNull(column) ? nil : try integer(column) }

  package func time(_ column: Int32) throws -> UnixTime { UnixTime(milliseconds: try integer(column)) }

  package func optionalTime(_ column: Int32) throws -> UnixTime? { isNull(column) ? nil : try time(column) }
}
