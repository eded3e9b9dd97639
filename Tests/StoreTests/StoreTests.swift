import FanfareCore
import Foundation
import Store
import Support
import Synchronization
import Testing

/// What a store does is the same on both engines.
@Suite(.timeLimit(.minutes(2))) struct StoreTests {
  enum Engine: CaseIterable, Sendable { case sqlite, postgreSQL }

  private static let engines = Engine.allCases.filter { $0 == .sqlite || TestPostgreSQL.exists }
  private static let migration = SchemaMigration(
    component: "things", applicationID: 0x5468_6E67,
    steps: [
      """
      CREATE TABLE things (
        hub text COLLATE "C" NOT NULL, id uuid NOT NULL, name text COLLATE "C", amount bigint, content bytea,
        is_good boolean NOT NULL DEFAULT false, tags text[] NOT NULL, maker uuid,
        PRIMARY KEY (hub, id)
      ) WITHOUT ROWID;
      """
    ])
  private static let columns = "hub, id, name, amount, content, is_good, tags, maker"
  private static let insert = PreparedStatement(
    "INSERT INTO things (\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
  private static let select = PreparedStatement("SELECT \(columns) FROM things WHERE hub = ?1 AND id = ?2 FOR UPDATE")
  private static let name = PreparedStatement("SELECT name FROM things WHERE hub = ?1 AND id = ?2")
  private static let names = PreparedStatement("SELECT name FROM things WHERE hub = ?1 AND id = ANY (?2)")
  private static let remove = PreparedStatement("DELETE FROM things WHERE hub = ?1 AND name = ANY (?2)")
  private static let raise = PreparedStatement(
    "UPDATE things SET amount = greatest(amount, ?3) WHERE hub = ?1 AND id = ?2")

  private static func id(_ number: Int) -> SendID { SendID(high: 1 << 63, low: UInt64(number)) }
  private static func row(_ number: Int) -> [Value] {
    [
      .text("h"), .id(id(number)), .text("name \(number)"), .int(number), .bytes(nil), .bool(false), .texts([]),
      .noUUID,
    ]
  }

  private func withStore(_ engine: Engine, _ body: (Store) async throws -> Void) async throws {
    try await withStores(engine) { open in
      let store = try open()
      defer { store.close() }
      try await body(store)
    }
  }

  /// Runs a test with a function that opens a new store, again and again.
  private func withStores(
    _ engine: Engine, _ body: (_ open: @escaping @Sendable () throws -> Store) async throws -> Void
  ) async throws {
    switch engine {
    case .sqlite:
      let path = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID())").path
      let result: Result<Void, any Error>
      do {
        try await body { try Store(SQLiteConfiguration(path: path, label: "test"), name: "the store", Self.migration) }
        result = .success(())
      } catch { result = .failure(error) }
      for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
        try FileManager.default.removeItem(atPath: path + suffix)
      }
      try result.get()
    case .postgreSQL:
      try await TestPostgreSQL.withSchema { configuration in
        try await body {
          try Store(configuration, name: "the store", Self.migration, logger: TestPostgreSQL.quietLogger)
        }
      }
    }
  }

  @Test(arguments: engines) func concurrentStartsAllFindTheTables(engine: Engine) async throws {
    for _ in 0..<5 {
      try await withStores(engine) { open in
        try await withThrowingTaskGroup { group in
          for _ in 0..<6 {
            group.addTask {
              let store = try open()
              defer { store.close() }
              try await store.check()
              #expect(try await store.read { try $0.first(Self.name, [.text(""), .id(Self.id(1))]) { _ in } } == nil)
            }
          }
          try await group.waitForAll()
        }
      }
    }
  }

  @Test(arguments: engines) func valuesRoundTrip(engine: Engine) async throws {
    try await withStore(engine) { store in
      let maker = SendID(high: 1, low: .max)
      let some: [Value] = [
        .text(""), .id(Self.id(1)), .text("ren\u{E9} 🦄 ' \""), .integer(.min), .bytes([0, 1, 255]), .bool(true),
        .texts(["a", "b c"]), .id(maker),
      ]
      let none: [Value] = [
        .text("h"), .id(Self.id(2)), .text(nil), .integer(nil), .bytes([]), .bool(false), .texts([]), .noUUID,
      ]
      for values in [some, none] { #expect(try await store.write { try $0.run(Self.insert, values) } == 1) }
      try await store.write { session in
        let read = try session.first(Self.select, [.text(""), .id(Self.id(1))]) { (row: Row) throws -> Bool in
          #expect(try row.id(1) == Self.id(1))
          #expect(try row.text(2) == "ren\u{E9} 🦄 ' \"")
          #expect(try row.integer(3) == .min)
          #expect(try row.bytes(4) == [0, 1, 255])
          #expect(try row.bool(5))
          #expect(try row.texts(6) == ["a", "b c"])
          #expect(try row.id(7) == maker)
          return true
        }
        #expect(read == true)
        _ = try session.first(Self.select, [.text("h"), .id(Self.id(2))]) { (row: Row) throws -> Void in
          #expect(try row.optionalText(2) == nil)
          #expect(try row.optionalInteger(3) == nil)
          #expect(try row.bytes(4).isEmpty)
          #expect(try row.texts(6).isEmpty)
          #expect(row.isNull(7))
        }
      }
      await #expect(throws: (any Error).self, "NULL is no integer") {
        try await store.read { try $0.first(Self.select, [.text("h"), .id(Self.id(2))]) { try $0.integer(3) } }
      }
    }
  }

  @Test(arguments: engines) func statementRunsForEachOfManyLists(engine: Engine) async throws {
    try await withStore(engine) { store in
      // More than are sent to a server at a time.
      let count = 1203
      try await store.write { try $0.run(Self.insert, each: (0..<count).map(Self.row)) }
      let read = try await store.read { session in
        try session.first(Self.name, each: [7, 5000, 1202].map { [.text("h"), .id(Self.id($0))] }) { try $0.text(0) }
      }
      #expect(read == ["name 7", nil, "name 1202"])
      let some = try await store.read { session in
        try session.all(Self.names, [.text("h")], any: [3, 4, 9999].map { .id(Self.id($0)) }) { try $0.text(0) }
      }
      #expect(Set(some) == ["name 3", "name 4"])
      let removed = try await store.write { try $0.run(Self.remove, [.text("h")], any: [.text("name 3"), .text("x")]) }
      #expect(removed == 1)
      try await store.write { try $0.run(Self.raise, each: [2, 9].map { [.text("h"), .id(Self.id(5)), .int($0)] }) }
      #expect(
        try await store.write { try $0.first(Self.select, [.text("h"), .id(Self.id(5))]) { try $0.int(3) } } == 9)
    }
  }

  @Test(arguments: engines) func failedStatementOfManyTakesTheTransactionBack(engine: Engine) async throws {
    try await withStore(engine) { store in
      await #expect(throws: (any Error).self) {
        try await store.write { try $0.run(Self.insert, each: [1, 2, 1, 3].map(Self.row)) }
      }
      for number in 1...3 {
        let name = try await store.read {
          try $0.first(Self.name, [.text("h"), .id(Self.id(number))]) { try $0.text(0) }
        }
        #expect(name == nil)
      }
      // The connection can be used again.
      try await store.write { try $0.run(Self.insert, each: [1, 2].map(Self.row)) }
    }
  }

  @Test(arguments: engines) func overtakenTransactionRunsAgain(engine: Engine) async throws {
    try await withStore(engine) { store in
      let attempts = Atomic(0)
      try await store.write { session in
        try session.run(Self.insert, Self.row(1))
        guard attempts.wrappingAdd(1, ordering: .relaxed).newValue == 3 else { throw StoreError.overtaken }
      }
      #expect(attempts.load(ordering: .relaxed) == 3)
      await #expect(throws: StoreError.overtaken, "not for ever") {
        try await store.write { _ in throw StoreError.overtaken }
      }
    }
  }

  @Test(arguments: engines) func checkWritesNothing(engine: Engine) async throws {
    try await withStore(engine) { store in
      try await store.check()
      try await store.migrate()
      try await store.write { _ = try $0.run(Self.insert, Self.row(1)) }
    }
  }
}
