package import FanfareCore
import FoundationEssentials
import LocalFile
package import Logging
package import PostgreSQL
package import Registry

/// The registry's store: a local SQLite file, or a PostgreSQL database that many machines share.
///
/// - `registry.path` (text, default `fanfare-registry.sqlite`): the file, used if `registry.postgres.url` is absent.
/// - `registry.maximumDevicesPerUser` (0…100000, default 200): at a registration beyond it the user's device that was not
///   seen for the longest time is removed; 0: no limit.
/// - `registry.quarantineDays` (0…365, default 7): how long a registration can come back whose handle a push
///   service called dead or that was surplus; 0: it is removed at once.
/// - `registry.postgres.url` (text): libpq's connection string,
///   `postgresql://user@host/database?sslrootcert=…`.
/// - `registry.postgres.passwordFile` (text): a file with the password, if the connection string has none.
/// - `registry.postgres.maximumConnections` (1…1000, default 8): the most connections of each process.
/// - `registry.postgres.connectSeconds` (seconds, default 5): the time limit of one attempt to connect.
/// - `registry.postgres.statementSeconds` (seconds, default 10): the time limit of a statement, after which the server
///   cancels it.
/// - `registry.postgres.waitSeconds` (seconds, default 5): the time limit of a wait for a free connection.
package struct RegistrySettings: Sendable {
  /// The requirements on a registration store.
  package typealias Store = DeviceRegistry & RegistrationDirectory & RegistrationInquiry & SecurePayloadStore
    & SendClaimStore
    & BroadcastStore
    & TombstoneStore
    & ScheduledSendStore & RegistrationImportStore & PushQuotaStore & CallerQuotaStore & QuarantineStore
    & APIKeyStore & TemplateStore

  /// The file, used if there is no database.
  package let path: String
  /// The database; nil to use the file.
  let postgreSQL: PostgreSQLConfiguration?
  /// The limits of the registrations.
  package let limits: RegistrationLimits

  init(from reader: SettingsReader) throws(SettingsError) {
    path = try reader.string("registry.path", default: "fanfare-registry.sqlite")
    var limits = RegistrationLimits()
    limits.maximumDevicesPerUser = try reader.int("registry.maximumDevicesPerUser", default: 200, in: 0...100_000)
    limits.quarantine = .seconds(86_400 * (try reader.int("registry.quarantineDays", default: 7, in: 0...365)))
    self.limits = limits
    postgreSQL = try PostgreSQLConfiguration("registry.postgres", connections: 8, from: reader)
  }

  /// The file's path; nil if there is a database.
  package var file: String? { postgreSQL == nil ? path : nil }

  /// Opens the store for a role.
  ///
  /// Throws when the store is unavailable, unless it is a database and the role `waits`. `patience` is the minimum time
  /// limit of a statement and of a wait for a connection or another process. A missing file is created unless it
  /// `mustExist`.
  package func open(
    role: String, patience: Duration = .zero, waits: Bool = false, mustExist: Bool = false, logger: Logger
  ) async throws -> any Store {
    guard let database = database(role: role, patience: patience) else {
      guard !mustExist || FileManager.default.fileExists(atPath: path) else {
        throw SettingsError("registry.path", "names no registry: \(path)")
      }
      var file = SQLiteRegistryConfiguration(path: path)
      file.busyTimeout = max(file.busyTimeout, patience)
      file.limits = limits
      LocalFile.warnIfExposed(path, logger: logger)
      return try SQLiteRegistry(file)
    }
    return try await PostgreSQLRegistry(database, limits: limits, waits: waits, logger: logger)
  }

  /// The database configuration that `open` uses; nil for the file.
  package func database(role: String, patience: Duration) -> PostgreSQLConfiguration? {
    guard var postgreSQL else { return nil }
    postgreSQL.applicationName = "fanfare-\(role)"
    postgreSQL.statementTimeout = max(postgreSQL.statementTimeout, patience)
    postgreSQL.waitLimit = max(postgreSQL.waitLimit, patience)
    return postgreSQL
  }
}
