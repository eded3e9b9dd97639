/// Why the database did not do what it was asked.
///
/// What is printed is the kind, the five characters of the SQLSTATE and, where a constraint failed, its name: never the
/// server's own text, which may repeat values.
package struct PostgreSQLError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of errors. A struct, so that a kind can be added without breaking a caller's switch.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Value: String {
      case unavailable = "the database cannot be used now"
      case conflict = "the database refused a change that conflicts with what is stored"
      case configuration = "the connection to the database is not described properly"
      case programming = "the database does not understand the program"
    }

    private let value: Value

    /// No connection, no answer in time, no free connection in time, or a server that is not able to: the same call can
    /// succeed later.
    package static let unavailable = Self(value: .unavailable)
    /// A constraint was violated, or a transaction collided with others more often than it was repeated.
    package static let conflict = Self(value: .conflict)
    /// The connection string, or what it points to, cannot be used: change the configuration.
    package static let configuration = Self(value: .configuration)
    /// Anything else: the statement does not fit the schema, or a value its type.
    package static let programming = Self(value: .programming)

    /// The kind in words.
    package var description: String { value.rawValue }
  }

  /// What the caller can do about it.
  package var code: Code
  /// The server's classification, five characters; nil where the server did not say anything.
  package var sqlState: String?
  /// The constraint that was violated.
  package var constraint: String?
  /// What else is known and contains no value, in a few fixed words.
  package var hint: String?
  /// Whether the connection is gone, or of no use any more.
  package var isConnectionLost = false
  /// Whether the server was given up because it did not answer: whoever asked has waited long enough.
  package var isTimeout = false
  /// Whether the change may have happened: the connection was lost while a commit was under way.
  package var isOutcomeUnknown = false

  /// Makes an error.
  package init(_ code: Code, sqlState: String? = nil, constraint: String? = nil, hint: String? = nil) {
    self.code = code
    self.sqlState = sqlState
    self.constraint = constraint
    self.hint = hint
  }

  /// To be thrown by a transaction's body that has seen that somebody else was quicker: the transaction is begun anew.
  package static let overtaken = Self(.conflict, sqlState: "40001", hint: "somebody else was quicker")

  /// Whether the transaction only has to be repeated: it was serialised after another one, or sacrificed in a deadlock.
  package var isRepeatable: Bool { sqlState == "40001" || sqlState == "40P01" }

  /// The kind, the SQLSTATE, the constraint, the hint.
  package var description: String {
    let known = [sqlState, constraint, hint, isOutcomeUnknown ? "the change may have happened" : nil].compactMap(\.self)
    return known.isEmpty ? "\(code)" : "\(code) (\(known.joined(separator: ", ")))"
  }
}

extension PostgreSQLError {
  /// The error that a SQLSTATE stands for.
  init(sqlState: String?, constraint: String?) {
    let code: Code =
      switch sqlState?.prefix(2) {
      // No state: libpq itself. 08 connection, 25006 a standby, 25P03 a session ended for idleness, 53 resources, 55P03
      // a lock, 57 an operator or a time-out, 58 and XX the system.
      case nil, "08", "53", "57", "58", "XX": .unavailable
      case "25" where sqlState == "25006" || sqlState == "25P03": .unavailable
      case "55" where sqlState == "55P03": .unavailable
      case "23", "40": .conflict
      case "28", "3D": .configuration
      default: .programming
      }
    self.init(code, sqlState: sqlState, constraint: constraint)
    // What ends a session comes as an answer first, and the end is seen afterwards.
    isConnectionLost = sqlState?.hasPrefix("57P") == true
  }
}
