/// How to connect to a database, and the limits of one pool.
package struct PostgreSQLConfiguration: Sendable {
  /// libpq's connection string: a URI (`postgresql://user@host/database`) or keywords (`host=… dbname=…`). Connects to
  /// primaries only, unless `target_session_attrs` says otherwise.
  ///
  /// Over the network the server is verified (`sslmode=verify-full`) unless the string has another `sslmode`; the
  /// environment does not count. The trusted roots are those of `sslrootcert` or of libpq's own file, else the
  /// system's.
  package var connection: String
  /// The password, if the connection string has none. Appears in no log, error or description.
  package var password: String?
  /// The `application_name` of the sessions, unless the connection string has one.
  package var applicationName = "fanfare"
  /// The maximum number of connections, at least 1. They are opened on demand.
  package var maximumConnections = 8
  /// The time limit for connecting to one host; at least two seconds.
  package var connectTimeout: Duration = .seconds(5)
  /// The server's time limit for one statement. The client waits for the answer two seconds longer.
  package var statementTimeout: Duration = .seconds(10)
  /// The longest wait of a caller for a free connection.
  package var waitLimit: Duration = .seconds(5)
  /// The minimum age of a connection before it is replaced because its server is read-only.
  package var replacementInterval: Duration = .seconds(5)
  /// The maximum number of callers that wait for a connection.
  package var maximumWaiting = 1000
  /// Further settings of each session, for example `search_path`. Names and values are not escaped: no spaces.
  package var settings: [String: String] = [:]
  /// How often a transaction is retried after a serialization failure or a deadlock.
  package var maximumRepetitions = 10

  /// The default limits, with a connection string.
  package init(connection: String) {
    self.connection = connection
  }
}

extension PostgreSQLConfiguration {
  /// `idle_in_transaction_session_timeout`: the server ends a session that is silent within a transaction for longer.
  private static let idleLimit: Duration = .seconds(60)

  /// Throws `configuration` when libpq cannot parse the connection string.
  package func validate() throws(PostgreSQLError) { _ = try parameters() }

  /// The hosts and ports, for people; contains no user, database or password.
  package var address: String {
    // A malformed connection string has an error of its own.
    guard let words = try? ConnectionInfo.parse(connection) else { return "the database" }
    let hosts = (words["host"] ?? words["hostaddr"])?.split(separator: ",").map(String.init) ?? []
    let ports = words["port"]?.split(separator: ",").map(String.init) ?? []
    guard !hosts.isEmpty else { return "the local server" }
    return hosts.enumerated().map { index, host in
      let port = index < ports.count ? ports[index] : ports.last ?? "5432"
      return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }.joined(separator: ",")
  }

  /// libpq's connection parameters: those of the connection string, and defaults for the others. Throws
  /// `configuration`.
  func parameters() throws(PostgreSQLError) -> [String: String] {
    var words = try ConnectionInfo.parse(connection)
    func fallback(_ key: String, _ value: String) { if words[key] == nil { words[key] = value } }
    if let password { fallback("password", password) }
    fallback("application_name", applicationName)
    // libpq takes whole seconds and treats 1 as 2.
    fallback("connect_timeout", "\(max(2, connectTimeout.components.seconds))")
    // A standby refuses every change, and its answers may be stale. `primary` rather than `read-write`: the reads of a
    // primary that is read-only because its disk is full are still correct.
    fallback("target_session_attrs", "primary")
    // Detect a peer that has vanished: keepalives for an idle connection, the user timeout for unacknowledged data.
    fallback("keepalives_idle", "30")
    // in range: settings, as below
    fallback("tcp_user_timeout", "\(Int((statementTimeout + .seconds(2)) / .milliseconds(1)))")
    if words["sslmode"] == nil, ConnectionInfo.usesNetwork(words) { words["sslmode"] = "verify-full" }
    if let mode = words["sslmode"], mode.hasPrefix("verify-"), let roots = ConnectionInfo.systemRoots() {
      fallback("sslrootcert", roots)
    }
    words["client_encoding"] = "UTF8"
    // A client that vanishes within a transaction must not hold its row locks until the server notices the dead TCP
    // connection, which may take hours. A server refuses a session with a setting that it does not know; every
    // PostgreSQL-compatible engine knows these two.
    var options = [
      // in range: settings
      words["options"], "-c statement_timeout=\(Int(statementTimeout / .milliseconds(1)))",
      "-c idle_in_transaction_session_timeout=\(Int(Self.idleLimit / .milliseconds(1)))",
    ].compactMap(\.self)
    options += settings.sorted { $0.key < $1.key }.map { "-c \($0.key)=\($0.value)" }
    words["options"] = options.joined(separator: " ")
    return words
  }
}

extension PostgreSQLConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Omits the connection string, which may hold a password.
  package var description: String { "PostgreSQL as \(applicationName), at most \(maximumConnections) connections" }

  /// Equal to ``description``: debugging output also ends up in logs.
  package var debugDescription: String { description }

  /// Keeps `dump` and the interpolation of an enclosing struct from printing the password.
  package var customMirror: Mirror {
    Mirror(self, children: ["applicationName": applicationName, "maximumConnections": maximumConnections])
  }
}
