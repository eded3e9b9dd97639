/// A failed statement or connection.
///
/// The description has the kind, the SQLSTATE and the name of a violated constraint, but never the server's own text,
/// which may repeat stored values.
package struct PostgreSQLError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of errors. A struct, so that a new kind does not break a caller's switch.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Value: String {
      case unavailable = "the database is unavailable"
      case conflict = "the change conflicts with stored data or another transaction"
      case configuration = "the database connection is not configured correctly"
      case programming = "the statement does not fit the database schema"
    }

    private let value: Value

    /// No connection, a timeout, or a server that is overloaded or stopping: the same call can succeed later.
    package static let unavailable = Self(value: .unavailable)
    /// A constraint was violated, or a transaction still collided with others after its last retry.
    package static let conflict = Self(value: .conflict)
    /// The connection string, the login or the database name is wrong: change the configuration.
    package static let configuration = Self(value: .configuration)
    /// Any other error: a statement does not fit the schema, or a value its type.
    package static let programming = Self(value: .programming)

    package var description: String { value.rawValue }
  }

  /// The kind of error.
  package var code: Code
  /// The server's SQLSTATE, five characters; nil when the error did not come from the server.
  package var sqlState: String?
  /// The violated constraint.
  package var constraint: String?
  /// More about the cause, in fixed words without stored values.
  package var hint: String?
  /// Whether the connection is closed or no longer usable.
  package var isConnectionLost = false
  /// Whether the server did not answer in time. Such a call is not retried: the caller has waited long enough.
  package var isTimeout = false
  /// Whether the change may have been made: the connection was lost during the commit.
  package var isOutcomeUnknown = false

  package init(_ code: Code, sqlState: String? = nil, constraint: String? = nil, hint: String? = nil) {
    self.code = code
    self.sqlState = sqlState
    self.constraint = constraint
    self.hint = hint
  }

  /// Whether a retry of the transaction may succeed: a serialization failure (40001) or a deadlock (40P01).
  package var isRepeatable: Bool { sqlState == "40001" || sqlState == "40P01" }

  package var description: String {
    let known = [
      hint, sqlState.map { state in Self.words(for: state).map { "\($0), SQLSTATE \(state)" } ?? "SQLSTATE \(state)" },
      constraint, isOutcomeUnknown ? "the change may have been made" : nil,
    ].compactMap(\.self)
    return known.isEmpty ? "\(code)" : "\(code): \(known.joined(separator: "; "))"
  }

  /// The meaning of an SQLSTATE that an operator can do something about.
  private static func words(for sqlState: String) -> String? {
    switch sqlState {
    case "25006": "the database is read-only"
    case "28P01", "28000": "the server refuses the user or the password"
    case "3D000": "the server has no database of this name"
    case "3F000", "42P01": "a table or schema is missing"
    case "42501": "the user lacks a privilege"
    case "53100": "the server's disk is full"
    case "53200": "the server has no memory left"
    case "53300": "the server has no connection left"
    case "55P03": "a lock was not released in time"
    case "57014": "the statement took longer than its time limit"
    case "57P01", "57P02": "the server is stopping"
    case "57P03": "the server is starting"
    default: nil
    }
  }
}

extension PostgreSQLError {
  /// Classifies an error of the server by its SQLSTATE; nil is an error of libpq itself.
  init(sqlState: String?, constraint: String?) {
    let code: Code =
      switch sqlState?.prefix(2) {
      // Classes: 08 connection, 53 insufficient resources, 57 operator intervention or timeout, 58 and XX system error.
      // States: 25006 read-only, 25P03 idle in transaction for too long, 55P03 lock not available.
      case nil, "08", "53", "57", "58", "XX": .unavailable
      case "25" where sqlState == "25006" || sqlState == "25P03": .unavailable
      case "55" where sqlState == "55P03": .unavailable
      case "23", "40": .conflict
      case "28", "3D": .configuration
      default: .programming
      }
    self.init(code, sqlState: sqlState, constraint: constraint)
    // 57P…: the server ends the session. The error arrives before the connection closes.
    isConnectionLost = sqlState?.hasPrefix("57P") == true
  }
}
