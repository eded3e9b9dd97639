import FanfareCore
import Foundation
import GRDB
import Support
import Testing

@testable import Registry

/// Several processes that share one file, as two registries.
@Suite(.timeLimit(.minutes(2))) struct SharedFileTests {
  private let clock = ManualClock()

  @Test func changeInOneRegistryIsSeenByTheOther() async throws {
    let temporary = try TemporaryRegistry()
    let (one, other) = (temporary.registry, try RegistryDatabase(temporary.configuration))
    try await expectSharedChanges(one, other, at: clock.now())
  }

  @Test func concurrentClaimsOfAHandleLeaveOneHolder() async throws {
    let temporary = try TemporaryRegistry()
    let stores = [temporary.registry, try RegistryDatabase(temporary.configuration)]
    let users = (0..<16).map { "user\($0)" }
    var ids: [String: RegistrationID] = [:]
    for user in users { ids[user] = try await stores[0].issue(hub: .default, handle: nil, at: clock.now()) }
    try await withThrowingTaskGroup { group in
      for (number, user) in users.enumerated() {
        let application = application(try #require(ids[user]), user, "ab01")
        group.addTask { _ = try await stores[number % 2].complete(application, at: clock.now()) }
      }
      try await group.waitForAll()
    }
    let holders = try await stores[0].resolve([query(.device(.apns, handle: "AB01"))])[0]
    let owned = try await stores[1].resolve(users.map { query(.user($0)) })
    #expect(holders.count == 1)
    #expect(owned.flatMap(\.self) == holders)
    var merged = 0
    for id in ids.values where try await stores[0].tombstone(of: id, hub: .default)?.cause == .merged { merged += 1 }
    #expect(merged == users.count - 1)
  }

  @Test func concurrentStartsAllFindTheTables() async throws {
    for _ in 0..<5 {
      let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-race-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      defer {
        // Errors are ignored: it is in the temporary directory.
        try? FileManager.default.removeItem(at: directory)
      }
      let configuration = SQLiteRegistryConfiguration(path: directory.appending(path: "registry.sqlite").path)
      try await withThrowingTaskGroup { group in
        for _ in 0..<6 { group.addTask { try await RegistryDatabase(configuration).check() } }
        try await group.waitForAll()
      }
    }
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
