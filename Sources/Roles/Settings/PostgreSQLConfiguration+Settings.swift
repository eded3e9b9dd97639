import SettingsTable
import Store

/// The keys of a database: `registry.postgres` and `ledger.postgres`.
struct DatabaseKeys: Sendable {
  @Setting(
    example: "postgresql://fanfare@db.example.com/fanfare?sslmode=verify-full", "libpq's connection string")
  var url: String?
  @Setting(example: "/etc/fanfare/database-password", "or set PGPASSFILE in the environment")
  var passwordFile: SecretFile?
  @Setting var maximumConnections: Int
  @Setting(standard, \.statementTimeout, in: 0.1...600, "the server cancels a statement after this time")
  var statementSeconds
  @Setting(standard, \.waitLimit, in: 0.1...600, "the longest wait for a free connection") var waitSeconds

  private static let standard = PostgreSQLConfiguration(connection: "")

  /// The section under a prefix, with its own number of connections.
  static func section(_ prefix: String, connections: Int, fewest: Int = 1) -> SettingsSection<Self> {
    SettingsSection(
      prefix, Self(connections: connections, fewest: fewest), "Replaces the file; all machines share the database.",
      // A connection string can have libpq's own connect_timeout.
      retired: ["connectSeconds": "an attempt to connect may take 5 seconds, unless url has a connect_timeout"])
  }

  private init(connections: Int, fewest: Int) {
    var standard = Self.standard
    standard.maximumConnections = connections
    _maximumConnections = Setting(standard, \.maximumConnections, in: fewest...1000, "per process")
  }
}

extension PostgreSQLConfiguration {
  /// Reads the database of a section; nil if the section has no `url`.
  ///
  /// Throws if the section has no `url`, but other keys show that a database is wanted.
  init?(_ section: SettingsSection<DatabaseKeys>, from reader: SettingsReader) throws(SettingsError) {
    self.init(connection: "")
    let keys = try reader.read(section, into: &self)
    connection = keys.url ?? ""
    password = try keys.passwordFile?.text()
    do throws(PostgreSQLError) { try validate() } catch {
      throw SettingsError(
        "\(section.prefix).url",
        "must be a connection string that libpq reads: postgresql://user@host/database?sslmode=verify-full")
    }
    guard keys.url == nil else { return }
    // The example file lists these keys with their defaults and no `url`, so only other values mean that a database is
    // wanted.
    if let name = section.changes(in: keys).first {
      throw SettingsError("\(section.prefix).url", "is missing: \(name) is given without it")
    }
    return nil
  }
}
