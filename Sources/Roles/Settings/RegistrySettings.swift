package import FanfareCore
import FoundationEssentials
package import Logging
package import Registry
import SettingsTable
package import Store

/// The registry's store: a local SQLite file, or a PostgreSQL database that many machines share.
package struct RegistrySettings: Sendable {
  /// The requirements on a registration store.
  package typealias Store = DeviceRegistry & RegistrationDirectory & RegistrationExpiryStore & RegistrationInquiry
    & SecurePayloadStore & SendClaimStore & BroadcastStore & TombstoneStore & ScheduledSendStore
    & RegistrationImportStore & PushQuotaStore & CallerQuotaStore & QuarantineStore & APIKeyStore & TemplateStore

  /// The file, used if there is no database.
  package let path: String
  /// The database; nil to use the file.
  let postgreSQL: PostgreSQLConfiguration?
  /// The limits of the registrations.
  package private(set) var limits = Self.standard
  /// The time without contact after which a registration expires; nil for never.
  let lifetime: Duration?

  struct Keys: Sendable {
    @Setting("shared by the api and the workers on this machine") var path = "fanfare-registry.sqlite"
    @Setting(
      standard, \.maximumDevicesPerUser, in: 0...100_000,
      "a user's registration beyond this removes the device whose app was silent for the longest time; 0: no limit")
    var maximumDevicesPerUser
    @Setting(
      standard, \.quarantine, days: 0...365,
      "a registration whose handle a push service calls dead, or that is surplus, can come back for this "
        + "time; 0: never")
    var quarantineDays
    @Setting(in: 0...3650, "a registration is removed when its app was silent for this long; 0: never")
    var expireAfterDays = 0
  }

  private static let standard = RegistrationLimits(maximumDevicesPerUser: 200, quarantine: .seconds(7 * 86_400))
  static let keys = SettingsSection("registry", Keys())
  static let databaseKeys = DatabaseKeys.section("registry.postgres", connections: 8)

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys, into: &limits)
    path = keys.path
    lifetime = keys.expireAfterDays == 0 ? nil : .seconds(86_400 * keys.expireAfterDays)
    postgreSQL = try PostgreSQLConfiguration(Self.databaseKeys, from: reader)
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
      return try RegistryDatabase(file, logger: logger)
    }
    return try await RegistryDatabase(database, limits: limits, waits: waits, logger: logger)
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
