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

  @Test func tombstonesHaveCauseAndTimeUntilTheyExpire() async throws {
    let temporary = try TemporaryRegistry { $0.tombstoneLifetime = .seconds(3600) }
    let registry = temporary.registry
    var ids: [RegistrationID] = []
    for handle in ["01", "02", "03", "04"] {
      ids.append(try await registry.issue(hub: .default, handle: nil, at: clock.now()))
      _ = try await registry.complete(application(ids[ids.count - 1], "alice", handle), at: clock.now())
    }
    clock.advance(by: .seconds(1))
    let then = clock.now()
    try await registry.remove(ids[0], hub: .default, user: "alice", at: then)
    _ = try await registry.complete(application(ids[3], "alice", "02"), at: then)
    let verdict = DeadDevice(hub: .default, registration: ids[2], handle: "03", since: nil, reason: "Unregistered")
    #expect(try await registry.drop([verdict], at: then) == [ids[2]])
    let expected = [
      Tombstone(cause: .removed, detail: "", at: then), Tombstone(cause: .merged, detail: ids[3].description, at: then),
      Tombstone(cause: .dead, detail: "Unregistered", at: then), nil,
    ]
    for (id, tombstone) in zip(ids, expected) {
      #expect(try await registry.tombstone(of: id, hub: .default) == tombstone)
    }
    let all = zip(ids, expected).compactMap { id, tombstone in
      tombstone.map { BuriedRegistration(registration: id, tombstone: $0) }
    }.sorted { $0.registration.description < $1.registration.description }
    func list(
      since: UnixTime = UnixTime(milliseconds: 0), cause: Tombstone.Cause? = nil, after last: BuriedRegistration? = nil,
      limit: Int = 10, hub: HubName = .default
    ) async throws -> [BuriedRegistration] {
      try await registry.tombstones(hub: hub, since: since, cause: cause, after: last, limit: limit)
    }
    #expect(try await list() == all)
    #expect(try await list(limit: 2) == Array(all.prefix(2)))
    #expect(try await list(after: all[1]) == [all[2]])
    #expect(try await list(after: all[2]).isEmpty)
    #expect(try await list(cause: .dead) == all.filter { $0.tombstone.cause == .dead })
    #expect(try await list(since: then) == all)
    #expect(try await list(since: then + .milliseconds(1)).isEmpty)
    #expect(try await list(hub: try #require(HubName("other"))).isEmpty)
    clock.advance(by: .seconds(3601))
    _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
    #expect(try await registry.tombstone(of: ids[0], hub: .default) == nil)
    #expect(try await registry.registration(ids[3], hub: .default) != nil)
  }

  @Test func expiredRowsArePurgedInBoundedSteps() async throws {
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let pending = Purge.batch + Purge.batch / 2
    try await registry.write { session in
      let table = RegistrationTable(session, .default)
      for _ in 0..<pending { try table.insertPending(.random(), handle: nil, at: clock.now()) }
    }
    let kept = try await registry.issue(hub: .default, handle: nil, at: clock.now() + .seconds(10))
    try await registry.store("p", id: .random(), hub: .default, recipient: "bob", expiresAt: clock.now() + .seconds(5))
    let claim = SendClaim(
      hub: .default, key: Array(repeating: 1, count: 32), request: Array(repeating: 2, count: 32),
      at: clock.now() + .seconds(-5))
    _ = try await registry.claim(claim, lifetime: .seconds(60))
    func rows(_ table: String) async throws -> Int? {
      try await registry.readFile { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") }
    }
    #expect(try await rows("registrations") == pending + 1)
    clock.advance(by: .seconds(3600))
    // Each of these calls also issues an id of its own.
    _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
    #expect(try await rows("registrations") == pending - Purge.batch + 2)
    #expect(try await rows("secure_payloads") == 0)
    #expect(try await rows("send_claims") == 0)
    _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
    #expect(try await rows("registrations") == 3, "a full batch is followed by another purge")
    clock.advance(by: .seconds(30))
    _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
    #expect(try await rows("registrations") == 4, "purges at most once a minute")
    clock.advance(by: .seconds(31))
    _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
    #expect(try await rows("registrations") == 4)
    await expect(.gone) { try await registry.complete(application(kept, "alice", "01"), at: clock.now()) }
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

  @Test func errorsNeverContainAHandle() async throws {
    let mark = "fade0fface"
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let id = try await registry.issue(hub: .default, handle: mark, at: clock.now())
    _ = try await registry.complete(application(id, "alice", mark), at: clock.now())
    var errors = CollectedErrors()
    await errors.collect { try await registry.complete(application(id, "bob", mark + "00"), at: clock.now()) }
    await errors.collect {
      try await registry.complete(application(id, "bob", mark, tags: ["username:\(mark)"]), at: clock.now())
    }
    await errors.collect {
      try await registry.complete(application(id, "bob", mark, tags: ["\(mark) \0"]), at: clock.now())
    }
    await errors.collect { try await registry.complete(application(id, "\(mark):", mark), at: clock.now()) }
    await errors.collect { try await registry.remove(id, hub: .default, user: mark, at: clock.now()) }
    // Without its tables every statement fails, with the handle among the arguments.
    try await registry.writeFile { db in
      try db.execute(sql: "ALTER TABLE registrations RENAME TO r; ALTER TABLE tags RENAME TO t")
    }
    await errors.collect { try await registry.issue(hub: .default, handle: mark, at: clock.now()) }
    await errors.collect { try await registry.resolve([query(.device(.apns, handle: mark)), query(.user(mark))]) }
    // A constraint violation: the handle gets a second holder.
    try await registry.writeFile { db in
      try db.execute(sql: "CREATE TABLE tags (x); ALTER TABLE r RENAME TO registrations")
    }
    await errors.collect {
      try await registry.writeFile { db in
        try db.execute(
          sql: "INSERT INTO registrations (hub, id, handle, registered_at, expires_at) VALUES ('default', ?, ?, 0, 0)",
          arguments: [Data(RegistrationID.random().bytes), mark])
      }
    }
    registry.close()
    await errors.collect { try await registry.issue(hub: .default, handle: mark, at: clock.now()) }
    errors.expect(count: 9, without: mark)
  }
}
