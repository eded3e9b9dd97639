import FanfareCore
import Foundation
import Store
import Support
import Testing

@testable import Registry

/// Several processes that share one store, which also keeps it small.
@Suite(.timeLimit(.minutes(2))) struct SharedStoreTests {
  private let clock = ManualClock()

  @Test(arguments: RegistryEngine.available)
  func changeInOneRegistryIsSeenByTheOther(engine: RegistryEngine) async throws {
    try await engine.withRegistry { one, reopen in
      let (other, now) = (try await reopen(), clock.now())
      let id = try await one.issue(hub: .default, handle: "ab01", at: now)
      #expect(try await other.issue(hub: .default, handle: "AB01", at: now) == id)
      for round in 0..<20 {
        let (writer, reader) = round.isMultiple(of: 2) ? (one, other) : (other, one)
        let user = "user\(round)"
        _ = try await writer.complete(application(id, user, "ab01"), at: now)
        let answers = try await reader.resolve([query(.user(user)), query(.user("user\(round - 1)"))])
        #expect(answers.map { $0.map(\.registration) } == [[id], []], "the device belongs to the last user")
      }
      try await other.remove(id, hub: .default, user: "user19", at: now)
      #expect(try await one.registration(id, hub: .default) == nil)
    }
  }

  @Test(arguments: RegistryEngine.available)
  func concurrentClaimsOfAHandleLeaveOneHolder(engine: RegistryEngine) async throws {
    try await engine.withRegistry { one, reopen in
      let stores = [one, try await reopen()]
      let users = (0..<16).map { "user\($0)" }
      var ids: [String: RegistrationID] = [:]
      for user in users { ids[user] = try await one.issue(hub: .default, handle: nil, at: clock.now()) }
      try await withThrowingTaskGroup { group in
        for (number, user) in users.enumerated() {
          let application = application(try #require(ids[user]), user, "ab01")
          group.addTask { _ = try await stores[number % 2].complete(application, at: clock.now()) }
          let installation = DeviceRequest(
            installation: "i-\(number % 3)", hub: .default, user: "user0", platform: .fcm, handle: "t\(number % 4)")
          // Errors are ignored: the installation may belong to another user by now, which is refused.
          group.addTask { _ = try? await stores[(number + 1) % 2].install(installation, at: clock.now()) }
        }
        try await group.waitForAll()
      }
      let holders = try await one.resolve([query(.device(.apns, handle: "AB01"))])[0]
      let owned = try await stores[1].resolve(users.map { query(.user($0)) })
      #expect(holders.count == 1)
      #expect(owned.flatMap(\.self).filter { $0.platform == .apns } == holders)
      var merged = 0
      for id in ids.values where try await one.tombstone(of: id, hub: .default)?.cause == .merged { merged += 1 }
      #expect(merged == users.count - 1)
      let answers = try await one.resolve((0..<4).map { query(.device(.fcm, handle: "t\($0)")) })
      #expect(answers.allSatisfy { $0.count <= 1 } && Set(answers.flatMap(\.self)).count <= 3)
    }
  }

  @Test(arguments: RegistryEngine.available)
  func tombstonesHaveCauseAndTimeUntilTheyExpire(engine: RegistryEngine) async throws {
    try await engine.withRegistry(tombstoneLifetime: .seconds(3600)) { registry, _ in
      var ids: [RegistrationID] = []
      for handle in ["01", "02", "03", "04"] {
        ids.append(try await registry.issue(hub: .default, handle: nil, at: clock.now()))
        _ = try await registry.complete(application(ids[ids.count - 1], "alice", handle), at: clock.now())
      }
      clock.advance(by: .seconds(1))
      let (then, later) = (clock.now(), clock.now() + .seconds(1))
      try await registry.remove(ids[0], hub: .default, user: "alice", at: later)
      _ = try await registry.complete(application(ids[3], "alice", "02"), at: then)
      let verdict = DeadDevice(hub: .default, registration: ids[2], handle: "03", since: nil, reason: "Unregistered")
      #expect(try await registry.drop([verdict], at: then) == [ids[2]])
      let expected = [
        Tombstone(cause: .removed, detail: "", at: later),
        Tombstone(cause: .merged, detail: ids[3].description, at: then),
        Tombstone(cause: .dead, detail: "Unregistered", at: then), nil,
      ]
      for (id, tombstone) in zip(ids, expected) {
        #expect(try await registry.tombstone(of: id, hub: .default) == tombstone)
      }
      let all = zip(ids, expected).compactMap { id, tombstone in
        tombstone.map { BuriedRegistration(registration: id, tombstone: $0) }
      }.sorted { ($0.tombstone.at, $0.registration) < ($1.tombstone.at, $1.registration) }
      func list(
        since: UnixTime = UnixTime(milliseconds: 0), cause: Tombstone.Cause? = nil,
        after last: BuriedRegistration? = nil, limit: Int = 10, hub: HubName = .default
      ) async throws -> [BuriedRegistration] {
        try await registry.tombstones(hub: hub, since: since, cause: cause, after: last, limit: limit)
      }
      #expect(try await list() == all)
      #expect(try await list(limit: 2) == Array(all.prefix(2)))
      #expect(try await list(after: all[0], limit: 1) == [all[1]])
      #expect(try await list(after: all[2]).isEmpty)
      #expect(try await list(cause: .dead) == all.filter { $0.tombstone.cause == .dead })
      #expect(try await list(since: then) == all)
      #expect(try await list(since: then + .milliseconds(1)) == [all[2]])
      #expect(try await list(hub: try #require(HubName("other"))).isEmpty)
      clock.advance(by: .seconds(3602))
      _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
      #expect(try await registry.tombstone(of: ids[0], hub: .default) == nil)
      #expect(try await registry.registration(ids[3], hub: .default) != nil)
    }
  }

  @Test(arguments: RegistryEngine.available)
  func expiredRowsArePurgedInBoundedSteps(engine: RegistryEngine) async throws {
    try await engine.withRegistry { registry, _ in
      let pending = Purge.batch + Purge.batch / 2
      try await registry.write { session in
        let table = RegistrationTable(session, .default)
        for number in 0..<pending { try table.insertPending(.random(), handle: "h\(number)", at: clock.now()) }
      }
      let kept = try await registry.issue(hub: .default, handle: nil, at: clock.now() + .seconds(10))
      let done = try await registry.issue(hub: .default, handle: nil, at: clock.now())
      let stored = try await registry.complete(application(done, "alice", "02"), at: clock.now())
      try await registry.store(
        "p", id: .random(), hub: .default, recipient: "bob", expiresAt: clock.now() + .seconds(5))
      let claim = SendClaim(
        hub: .default, key: Array(repeating: 1, count: 32), request: Array(repeating: 2, count: 32),
        at: clock.now() + .seconds(-5))
      _ = try await registry.claim(claim, lifetime: .seconds(60))
      #expect(try await registry.count("registrations") == pending + 2)
      clock.advance(by: .seconds(3600))
      // Each of these calls also issues an id of its own.
      _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
      #expect(try await registry.count("registrations") == pending - Purge.batch + 3)
      #expect(try await registry.count("secure_payloads") == 0)
      #expect(try await registry.count("send_claims") == 0)
      _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
      #expect(try await registry.count("registrations") == 4, "a full batch is followed by another purge")
      if engine == .postgreSQL { #expect(try await registry.count("handles") == 1) }
      clock.advance(by: .seconds(30))
      _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
      #expect(try await registry.count("registrations") == 5, "purges at most once a minute")
      clock.advance(by: .seconds(31))
      _ = try await registry.issue(hub: .default, handle: nil, at: clock.now())
      #expect(try await registry.count("registrations") == 5)
      await expect(.gone) { try await registry.complete(application(kept, "alice", "01"), at: clock.now()) }
      #expect(try await registry.registration(done, hub: .default) == stored)
    }
  }

  @Test(arguments: RegistryEngine.available) func errorsNeverContainAHandle(engine: RegistryEngine) async throws {
    let mark = "fade0fface"
    try await engine.withRegistry { registry, _ in
      let id = try await registry.issue(hub: .default, handle: mark, at: clock.now())
      _ = try await registry.complete(application(id, "alice", mark), at: clock.now())
      var errors = CollectedErrors()
      await errors.collect { try await registry.complete(application(id, "bob", mark + "00"), at: clock.now()) }
      for tag in ["username:\(mark)", "\(mark) \0"] {
        await errors.collect { try await registry.complete(application(id, "bob", mark, tags: [tag]), at: clock.now()) }
      }
      await errors.collect { try await registry.complete(application(id, "\(mark):", mark), at: clock.now()) }
      await errors.collect { try await registry.remove(id, hub: .default, user: mark, at: clock.now()) }
      // A constraint violation: the row gets a second one with its key.
      await errors.collect {
        try await registry.write { try $0.script("INSERT INTO registrations SELECT * FROM registrations") }
      }
      // Without its tables every statement fails, with the handle among the arguments.
      try await registry.write {
        try $0.script("ALTER TABLE registrations RENAME TO r; ALTER TABLE tags RENAME TO t")
      }
      await errors.collect { try await registry.issue(hub: .default, handle: mark, at: clock.now()) }
      await errors.collect { try await registry.resolve([query(.device(.apns, handle: mark)), query(.user(mark))]) }
      registry.close()
      await errors.collect { try await registry.issue(hub: .default, handle: mark, at: clock.now()) }
      errors.expect(count: 9, without: mark)
    }
  }
}

/// Collects errors and checks that they contain no stored value.
private struct CollectedErrors {
  private var errors: [any Error] = []

  /// Expects the call to throw.
  mutating func collect(_ body: () async throws -> some Sendable) async {
    do {
      _ = try await body()
      Issue.record("nothing was thrown")
    } catch { errors.append(error) }
  }

  /// Expects that many errors, all `RegistryError`, none of which contains the mark.
  func expect(count: Int, without mark: String) {
    #expect(errors.count == count)
    for error in errors {
      #expect(error is RegistryError)
      for text in ["\(error)", String(reflecting: error), error.localizedDescription] { #expect(!text.contains(mark)) }
    }
  }
}
