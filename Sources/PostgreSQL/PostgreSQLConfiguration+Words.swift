extension PostgreSQLConfiguration {
  /// The longest that nothing may be said within a transaction; then the server ends the session.
  private static let idleLimit: Duration = .seconds(60)

  /// Throws `configuration` where the connection string is none.
  package func validate() throws(PostgreSQLError) { _ = try words() }

  /// What libpq is told: the connection string's words, and ours where it is silent. Throws `configuration`.
  func words() throws(PostgreSQLError) -> [String: String] {
    var words = try ConnectionInfo.parse(connection)
    func fallback(_ key: String, _ value: String) { if words[key] == nil { words[key] = value } }
    if let password { fallback("password", password) }
    fallback("application_name", applicationName)
    // libpq counts whole seconds, and takes 1 for 2.
    fallback("connect_timeout", "\(max(2, connectTimeout.components.seconds))")
    // A standby refuses every change, and what it answers may be out of date. What a primary answers that takes no
    // changes for want of disk is right.
    fallback("target_session_attrs", "primary")
    // A peer that has vanished without a word is noticed: while nothing is under way, and while it is.
    fallback("keepalives_idle", "30")
    fallback("tcp_user_timeout", "\(Int((statementTimeout + .seconds(2)) / .milliseconds(1)))")
    words["client_encoding"] = "UTF8"
    // Whoever vanishes within a transaction must not keep its rows for as long as the server takes a silent peer for
    // alive, which may be hours. An engine that does not know a setting lets nobody in who brings it: all of them know
    // these two.
    var options = [
      words["options"], "-c statement_timeout=\(Int(statementTimeout / .milliseconds(1)))",
      "-c idle_in_transaction_session_timeout=\(Int(Self.idleLimit / .milliseconds(1)))",
    ].compactMap(\.self)
    options += settings.sorted { $0.key < $1.key }.map { "-c \($0.key)=\($0.value)" }
    words["options"] = options.joined(separator: " ")
    return words
  }
}
