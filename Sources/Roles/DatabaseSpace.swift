import Ledger
import Logging
import Metrics
import ServiceLifecycle
import Store

/// Reports the size of a SQLite database and the space on its file system, four times a minute.
struct DatabaseSpace: NamedService {
  private static let interval = Duration.seconds(15)

  let name: String
  private let path: String
  private let database: Gauge
  private let disk: Gauge
  private let free: Gauge

  /// `database` is the value of the label: `registry` or `ledger`.
  init(of database: String, at path: String) {
    self.path = path
    name = "space of the \(database)"
    let dimensions = [("database", database)]
    self.database = Gauge(label: "fanfare_database_bytes", dimensions: dimensions)
    disk = Gauge(label: "fanfare_database_disk_bytes", dimensions: dimensions)
    free = Gauge(label: "fanfare_database_disk_free_bytes", dimensions: dimensions)
  }

  func run() async {
    await cancelWhenGracefulShutdown {
      while true {
        if let space = LocalFile.space(at: path) {
          database.record(space.database)
          disk.record(space.disk)
          free.record(space.free)
        }
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }
}

/// Reports the size of a PostgreSQL database once a minute. The server's disk has its own monitoring.
struct DatabaseSize: NamedService {
  private static let interval = Duration.seconds(60)
  private static let size = PreparedStatement("SELECT pg_database_size(current_database())")

  let name: String
  private let configuration: PostgreSQLConfiguration
  private let logger: Logger
  private let database: Gauge

  /// `database` is the value of the label: `registry` or `ledger`.
  init(of database: String, at configuration: PostgreSQLConfiguration, logger: Logger) {
    (self.configuration, self.logger) = (configuration, logger)
    name = "size of the \(database)"
    self.database = Gauge(label: "fanfare_database_bytes", dimensions: [("database", database)])
  }

  func run() async {
    await cancelWhenGracefulShutdown {
      while true {
        do { database.record(try await bytes()) } catch {
          // The role's own connections report it; the series keeps its value.
          logger.debug("Size of the database is unknown", metadata: [LogKeys.error: "\(error)"])
        }
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }

  /// Reads the size, on a connection that is closed again.
  func bytes() async throws -> Int64 {
    var configuration = configuration
    configuration.maximumConnections = 1
    let pool = try PostgreSQLPool(configuration, logger: logger)
    defer { pool.close() }
    return try await pool.read { try $0.query(Self.size).integer(0, 0) }
  }
}

extension RegistrySettings {
  /// The service that watches the store's space.
  func spaceService(logger: Logger) -> any Service {
    guard let server = database(role: "size", patience: .zero) else { return DatabaseSpace(of: "registry", at: path) }
    return DatabaseSize(of: "registry", at: server, logger: logger)
  }
}

extension LedgerSettings {
  /// The service that watches the store's space.
  func spaceService(logger: Logger) -> any Service {
    guard let database else { return DatabaseSpace(of: "ledger", at: store.path) }
    return DatabaseSize(of: "ledger", at: database, logger: logger)
  }
}
