import FanfareCore
import Foundation
import GRDB
import Store
import Support
import Testing

@testable import Ledger

/// A directory for one test's files, removed with it.
final class TemporaryDirectory: Sendable {
  private let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "ledger-\(UUID())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    // A leftover temporary directory does no harm.
    try? FileManager.default.removeItem(at: url)
  }

  func path(_ name: String = "ledger.sqlite") -> String { url.appending(path: name).path }

  func settings(_ name: String = "ledger.sqlite") -> SQLiteLedgerConfiguration {
    var settings = SQLiteLedgerConfiguration(path: path(name))
    settings.maximumDevices = 4
    return settings
  }
}

/// The store that a test of all stores runs against at present; see `EveryStore`.
enum TestStore {
  /// Databases without ledger tables; nil while the store is a file.
  @TaskLocal static var databases: [PostgreSQLConfiguration]?

  /// Opens the store with that number, 0 or 1. Ledgers of the same number share one file or database.
  static func make(
    _ directory: TemporaryDirectory, number: Int = 0, retention: Duration = .seconds(30 * 86_400),
    clock: any WallClock = SystemWallClock()
  ) throws -> any LedgerStore {
    guard let databases else {
      var settings = directory.settings("ledger-\(number).sqlite")
      settings.retention = retention
      return try SQLiteLedger(settings, clock: clock)
    }
    var settings = PostgreSQLLedgerConfiguration(database: databases[number])
    settings.maximumDevices = directory.settings().maximumDevices
    settings.retention = retention
    // Batches of one record use the general statement, larger ones the specialised statement.
    settings.fewestAtOnce = 2
    return try PostgreSQLLedger(settings, clock: clock, logger: TestPostgreSQL.quietLogger)
  }

  /// Opens the store with number 0 as another process does.
  static func reader(_ directory: TemporaryDirectory) throws -> any QueriedLedger & SendHistory & AcknowledgementStore {
    guard let databases else { return SQLiteLedgerReader(directory.settings("ledger-0.sqlite")) }
    return try PostgreSQLLedger(
      PostgreSQLLedgerConfiguration(database: databases[0]), logger: TestPostgreSQL.quietLogger)
  }

  /// Runs statements in the store with number 0.
  static func execute(_ directory: TemporaryDirectory, sqlite: String, postgreSQL: String) async throws {
    guard let databases else {
      return try await DatabaseQueue(path: directory.path("ledger-0.sqlite")).write { try $0.execute(sql: sqlite) }
    }
    let pool = try PostgreSQLPool(databases[0], logger: TestPostgreSQL.quietLogger)
    defer { pool.close() }
    try await pool.withConnection { try $0.executeScript(postgreSQL) }
  }
}

/// Runs each test of a suite against every store: a SQLite file and, if a server is available, a database.
struct EveryStore: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await function()
    guard try await TestPostgreSQL.isAvailable.evaluate() else { return }
    try await TestPostgreSQL.withSchema { first in
      try await TestPostgreSQL.withSchema { second in
        try await TestStore.$databases.withValue([first, second], operation: { try await function() })
      }
    }
  }
}

extension Trait where Self == EveryStore {
  /// Each test runs once for each store, which `TestStore.make` opens.
  static var everyStore: Self { Self() }
}

extension UnixTime {
  /// The reference time of the tests.
  static let start = UnixTime(milliseconds: 1_790_000_000_000)
}
