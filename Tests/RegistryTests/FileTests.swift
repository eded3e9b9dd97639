import FanfareCore
import Foundation
import GRDB
import Support
import Testing

@testable import Registry

/// The SQLite file: refused files, migration, purging, and query plans.
@Suite(.timeLimit(.minutes(2))) struct FileTests {
  private let clock = ManualClock()

  @Test func unusableFileIsRefusedWithItsPath() async throws {
    let temporary = try TemporaryRegistry()
    let directory = URL(filePath: temporary.configuration.path).deletingLastPathComponent()
    let text = directory.appending(path: "text.sqlite")
    try Data(repeating: UInt8(ascii: "x"), count: 8192).write(to: text)
    let foreign = directory.appending(path: "foreign.sqlite")
    try await DatabaseQueue(path: foreign.path).write { db in try db.execute(sql: "CREATE TABLE something (id)") }
    try await temporary.registry.writeFile { db in try db.execute(sql: "PRAGMA user_version = 99") }
    let cases = [
      (directory.appending(path: "missing/registry.sqlite").path, "unable to open"), (text.path, "not a database"),
      (foreign.path, "another application"), (temporary.configuration.path, "later release"),
      (directory.path, "unable to open"),
    ]
    for (path, reason) in cases {
      let error = #expect(throws: RegistryFileError.self) {
        try RegistryDatabase(SQLiteRegistryConfiguration(path: path))
      }
      #expect(
        error?.message.contains(path) == true && error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }
    #expect(try await DatabaseQueue(path: foreign.path).read { db in try db.tableExists("registrations") } == false)
  }

  @Test func fileAndItsLogBelongToTheirOwnerAlone() async throws {
    let temporary = try TemporaryRegistry()
    _ = try await temporary.registry.issue(hub: .default, handle: nil, at: clock.now())
    for suffix in ["", "-wal", "-shm"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: temporary.configuration.path + suffix)
      #expect((attributes[.posixPermissions] as? Int) == 0o600, "\(suffix)")
    }
  }

  @Test(arguments: [true, false]) func fileThatIsDeletedOrReplacedIsNotServedOn(isReplaced: Bool) async throws {
    let temporary = try TemporaryRegistry()
    let path = temporary.configuration.path
    let id = try await temporary.registry.issue(hub: .default, handle: nil, at: clock.now())
    try await temporary.registry.check()
    try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
    if isReplaced { try Data().write(to: URL(fileURLWithPath: path)) }
    let error = await #expect(throws: RegistryError.self) { try await temporary.registry.check() }
    #expect(error?.code == .unavailable && error?.message.contains("deleted or replaced") == true)
    await expect(.unavailable) {
      try await temporary.registry.complete(application(id, "alice", "01"), at: clock.now())
    }
    if isReplaced { try FileManager.default.removeItem(atPath: path) }
    try FileManager.default.moveItem(atPath: path + ".moved", toPath: path)
    try await temporary.registry.check()
    _ = try await temporary.registry.complete(application(id, "alice", "01"), at: clock.now())
  }

  @Test(arguments: [SQLiteAudienceLookup.byTag, SQLiteAudienceLookup.byTagWithProfile])
  func tagLookUpNeverScans(sql: String) async throws { try await expectSearch(sql) }

  @Test func handleLookUpNeverScans() async throws { try await expectSearch(SQLiteAudienceLookup.byHandle) }

  @Test(arguments: [
    ("a", 1), ("a && b", 2), ("a && !b", 2), ("a || b", 2), ("(a || b || c) && !(d && e) && (f || !g)", 7), ("!a", 1),
  ])
  func pageReadsByKeyAndDoesNotSort(expression: String, searches: Int) async throws {
    let temporary = try TemporaryRegistry()
    let plan = AudiencePlan(.expression(try TagExpression(expression))) { _ in 1 }
    let page = SQLitePageQuery(
      plan, .all, AudienceRange(slice: .page(1, of: 3), createdBefore: clock.now(), limit: 100), hub: .default)
    let steps = try await temporary.registry.readFile { db in
      try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + page.sql, arguments: page.arguments).map {
        $0["detail"] as String
      }
    }
    // The candidates are a coroutine over ranges of a key: the tags', or the registrations' when no tag is implied.
    #expect(steps.allSatisfy { !$0.hasPrefix("SCAN") || $0 == "SCAN candidate" }, "\(steps)")
    #expect(!steps.contains { $0.contains("TEMP B-TREE") }, "\(steps)")
    let byTag = steps.count { $0.hasPrefix("SEARCH tags USING PRIMARY KEY (tag=? AND hub=? AND registration") }
    let byID = steps.count { $0.hasPrefix("SEARCH registrations USING PRIMARY KEY (hub=? AND id>? AND id<?)") }
    #expect((byTag, byID) == (searches, plan.source == .registrations ? 1 : 0), "\(steps)")
  }

  @Test func pageOfEveryoneReadsTheKeyInOrder() async throws {
    let temporary = try TemporaryRegistry()
    let page = SQLitePageQuery(
      AudiencePlan(.everyone) { _ in 1 }, .all,
      AudienceRange(slice: .whole, createdBefore: clock.now(), limit: 100), hub: .default)
    let steps = try await temporary.registry.readFile { db in
      try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + page.sql, arguments: page.arguments).map {
        $0["detail"] as String
      }
    }
    #expect(steps.contains("SEARCH registrations USING PRIMARY KEY (hub=? AND id>? AND id<?)"), "\(steps)")
    #expect(!steps.contains { $0.contains("TEMP B-TREE") || $0 == "SCAN registrations" }, "\(steps)")
  }

  private func expectSearch(_ sql: String) async throws {
    let temporary = try TemporaryRegistry()
    let plan = try await temporary.registry.readFile { db in
      try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql, arguments: ["default", "[]"]).map {
        $0["detail"] as String
      }
    }
    #expect(plan.count { $0.hasPrefix("SCAN") } == 1, "\(plan)")
    #expect(plan.first?.hasPrefix("SCAN keys") == true)
    #expect(plan.dropFirst().allSatisfy { $0.hasPrefix("SEARCH") }, "\(plan)")
    let isWhole = plan.contains { $0.contains("(tag=? AND hub=?)") || $0.contains("one_holder (hub=? AND handle=?)") }
    #expect(isWhole, "\(plan)")
  }

  @Test func finishedChangeSurvivesACrash() async throws {
    let temporary = try TemporaryRegistry()
    let id = try await temporary.registry.issue(hub: .default, handle: nil, at: clock.now())
    let stored = try await temporary.registry.complete(application(id, "alice", "ab01"), at: clock.now())
    // A crash leaves the files as they are, with nothing closed.
    let source = temporary.configuration.path
    let copy = source + ".after-crash"
    for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: source + suffix, toPath: copy + suffix) }
    let reopened = try RegistryDatabase(SQLiteRegistryConfiguration(path: copy))
    #expect(try await reopened.registration(id, hub: .default) == stored)
    // 2 is FULL: the log is synced at every commit.
    #expect(try await reopened.writeFile { db in try Int.fetchOne(db, sql: "PRAGMA synchronous") } == 2)
    reopened.close()
    #expect(
      try await RegistryDatabase(SQLiteRegistryConfiguration(path: copy)).registration(id, hub: .default) == stored)
  }

  @Test func lockHeldTooLongMakesTheRegistryUnavailable() async throws {
    let temporary = try TemporaryRegistry()
    let id = try await temporary.registry.issue(hub: .default, handle: nil, at: clock.now())
    let stored = try await temporary.registry.complete(application(id, "alice", "ab01"), at: clock.now())
    var impatience = temporary.configuration
    impatience.busyTimeout = .milliseconds(20)
    let impatient = try RegistryDatabase(impatience)
    var settings = Configuration()
    settings.allowsUnsafeTransactions = true
    let holder = try DatabaseQueue(path: temporary.configuration.path, configuration: settings)
    try await holder.writeWithoutTransaction { db in try db.beginTransaction(.immediate) }
    await expect(.unavailable) { try await impatient.check() }
    await expect(.unavailable) { try await impatient.complete(application(id, "alice", "cd02"), at: clock.now()) }
    #expect(try await impatient.registration(id, hub: .default) == stored, "readers need no lock")
    try await holder.writeWithoutTransaction { db in try db.commit() }
    try await temporary.registry.check()
  }

  @Test func cancelledCallChangesNothing() async throws {
    let temporary = try TemporaryRegistry()
    let id = try await temporary.registry.issue(hub: .default, handle: nil, at: clock.now())
    await withTaskGroup(of: Void.self) { group in
      group.cancelAll()
      group.addTask {
        await expect(.unavailable) {
          try await temporary.registry.complete(application(id, "alice", "ab01"), at: clock.now())
        }
      }
    }
    #expect(try await temporary.registry.registration(id, hub: .default) == nil)
  }
}
