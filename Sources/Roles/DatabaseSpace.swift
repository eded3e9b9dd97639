import Ledger
import LocalFile
import Metrics
import ServiceLifecycle

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

extension RegistrySettings {
  /// The services that watch the store's space; none for a database server, which has its own monitoring.
  var spaceServices: [any Service] { postgreSQL == nil ? [DatabaseSpace(of: "registry", at: path)] : [] }
}

extension LedgerSettings {
  /// The services that watch the store's space; none for a database server, which has its own monitoring.
  var spaceServices: [any Service] { postgreSQL == nil ? [DatabaseSpace(of: "ledger", at: store.path)] : [] }
}
