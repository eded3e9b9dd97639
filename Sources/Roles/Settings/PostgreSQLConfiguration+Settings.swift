import PostgreSQL

extension PostgreSQLConfiguration {
  /// Reads the database of a section such as `ledger.postgres`; nil if the section has no `url`.
  ///
  /// Throws if the section has no `url`, but other keys show that a database is wanted.
  ///
  /// - `url` (text): libpq's connection string, `postgresql://user@host/database?sslrootcert=…`.
  /// - `passwordFile` (text): a file with the password, if the connection string has none.
  /// - `maximumConnections` (1…1000): the most connections of each process.
  /// - `connectSeconds` (seconds, default 5): the time limit of one attempt to connect.
  /// - `statementSeconds` (seconds, default 10): the time limit of a statement, after which the server cancels it.
  /// - `waitSeconds` (seconds, default 5): the time limit of a wait for a free connection.
  init?(
    _ section: String, connections: Int, fewest: Int = 1, from reader: SettingsReader
  ) throws(SettingsError) {
    let url = try reader.optionalString("\(section).url")
    self.init(connection: url ?? "")
    password = try reader.secretFile(at: "\(section).passwordFile")?.text()
    maximumConnections = try reader.int("\(section).maximumConnections", default: connections, in: fewest...1000)
    connectTimeout = try reader.seconds("\(section).connectSeconds", default: 5, in: 2...600)
    statementTimeout = try reader.seconds("\(section).statementSeconds", default: 10, in: 0.1...600)
    waitLimit = try reader.seconds("\(section).waitSeconds", default: 5, in: 0.1...600)
    do throws(PostgreSQLError) { try validate() } catch {
      throw SettingsError(
        "\(section).url",
        "must be a connection string that libpq reads: postgresql://user@host/database?sslmode=verify-full")
    }
    guard url == nil else { return }
    // The example file lists these keys with their defaults and no `url`, so only other values mean that a database is
    // wanted.
    let names: [(name: String, isMeant: Bool)] = [
      ("passwordFile", password != nil), ("maximumConnections", maximumConnections != connections),
      ("connectSeconds", connectTimeout != .seconds(5)), ("statementSeconds", statementTimeout != .seconds(10)),
      ("waitSeconds", waitLimit != .seconds(5)),
    ]
    if let name = names.first(where: { $0.isMeant })?.name {
      throw SettingsError("\(section).url", "is missing: \(name) is given without it")
    }
    return nil
  }
}
