/// How to reach a database, and how much of it one process may use.
package struct PostgreSQLConfiguration: Sendable {
  /// libpq's connection string: a URI (`postgresql://user@host/database?sslmode=verify-full&sslrootcert=…`) or words
  /// (`host=… dbname=…`). A standby is not connected to, unless it says otherwise (`target_session_attrs`).
  package var connection: String
  /// The password, where the connection string has none. Appears in no log, error or description.
  package var password: String?
  /// The name under which the connections show up at the server, unless the connection string gives one.
  package var applicationName = "fanfare"
  /// The most connections of one pool, at least 1. They are opened as they are needed.
  package var maximumConnections = 8
  /// The longest that opening one connection to one host may take; at least two seconds are granted.
  package var connectTimeout: Duration = .seconds(5)
  /// The longest that one statement may take at the server, and a little more until its answer must be here.
  package var statementTimeout: Duration = .seconds(10)
  /// The longest that a caller waits for a connection to be free.
  package var waitLimit: Duration = .seconds(5)
  /// How old a connection is at least that is given up because its server takes no changes.
  package var replacementInterval: Duration = .seconds(5)
  /// The most callers that wait for a connection.
  package var maximumWaiting = 1000
  /// Further settings of each session at the server, for example its `search_path`; sound names and values without
  /// spaces.
  package var settings: [String: String] = [:]
  /// How often a transaction is repeated that collided with others.
  package var maximumRepetitions = 10

  /// The defaults, for a connection string.
  package init(connection: String) {
    self.connection = connection
  }
}

extension PostgreSQLConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Nothing of the connection string, which may hold a password.
  package var description: String { "PostgreSQL as \(applicationName), at most \(maximumConnections) connections" }

  /// As ``description``: debugging output ends up in logs, too.
  package var debugDescription: String { description }

  /// Keeps `dump` and the interpolation of an enclosing struct from printing the password.
  package var customMirror: Mirror {
    Mirror(self, children: ["applicationName": applicationName, "maximumConnections": maximumConnections])
  }
}
