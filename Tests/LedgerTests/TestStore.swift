import FanfareCore
import PostgreSQL
import Support
import Testing

@testable import Ledger

/// The store that a test of every store's promises runs against now.
enum TestStore {
  /// Databases without a ledger; nil where the store is a file.
  @TaskLocal static var databases: [PostgreSQLConfiguration]?

  /// A ledger in one of two places; several in the same place share it.
  static func make(
    _ directory: TemporaryDirectory, number: Int = 0, retention: Duration = .seconds(30 * 86_400),
    clock: any WallClock = SystemWallClock()
  ) throws -> any LedgerStorage {
    guard let databases else {
      var settings = directory.settings("ledger-\(number).sqlite")
      settings.retention = retention
      return try LedgerStore(settings, clock: clock)
    }
    var settings = PostgreSQLLedgerConfiguration(database: databases[number])
    settings.maximumDevices = directory.settings().maximumDevices
    settings.retention = retention
    // Batches of one record go the one way, and larger ones the other.
    settings.fewestAtOnce = 2
    return try PostgreSQLLedger(settings, clock: clock, logger: TestPostgreSQL.quietLogger)
  }
}

/// Runs each test of a suite against every store: a file, and where there is a server, a database.
struct EveryStore: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await function()
    guard try await TestPostgreSQL.isThere.evaluate() else { return }
    try await TestPostgreSQL.withSchema { first in
      try await TestPostgreSQL.withSchema { second in
        try await TestStore.$databases.withValue([first, second], operation: { try await function() })
      }
    }
  }
}

extension Trait where Self == EveryStore {
  /// Each test runs once for each store; `TestStore.make` makes it.
  static var everyStore: Self { Self() }
}
