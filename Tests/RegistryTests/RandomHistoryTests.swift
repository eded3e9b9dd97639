import FanfareCore
import Foundation
import GRDB
import Support
import Testing

@testable import Registry

/// A long random history of everything that apps and services do, with few users and handles, so that they get in each other's way.
@Suite(.timeLimit(.minutes(2))) struct RandomHistoryTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func everyHistoryLeavesOneHolderPerHandleAndExactlyItsTags(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let clock = ManualClock()
    let temporary = try TemporaryRegistry()
    let registry = temporary.registry
    let users = ["alice", "bob", "ren\u{E9}", "rene\u{301}"]
    let handles = ["aa", "AB", "ab", "c:d", "C:d"]
    var ids: [RegistrationID] = []
    var owners: [RegistrationID: String] = [:]
    for _ in 0..<250 {
      clock.advance(by: .seconds(Int64.random(in: 0...600, using: &random)))
      let user = users[Int.random(in: 0..<users.count, using: &random)]
      let handle = handles[Int.random(in: 0..<handles.count, using: &random)]
      let platform: Platform = handle.contains(":") || Bool.random(using: &random) ? .fcm : .apns
      let tags = ["news", "sport"].filter { _ in Bool.random(using: &random) }
      let id = ids.randomElement(using: &random) ?? .random()
      do {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2:
          ids.append(try await registry.issue(hub: .default, handle: Bool.random(using: &random) ? handle : nil, at: clock.now()))
        case 3...6:
          let application = RegistrationApplication(
            id: id, hub: .default, user: user, platform: platform, handle: handle, tags: tags)
          owners[id] = try await registry.complete(application, at: clock.now()).user
        case 7:
          let application = InstallationApplication(
            installation: "i\(Int.random(in: 0..<2, using: &random))", hub: .default, user: user, platform: platform,
            handle: handle,
            tags: tags)
          let registration = try await registry.install(application, at: clock.now())
          ids.append(registration.id)
          owners[registration.id] = registration.user
        case 8: try await registry.remove(id, hub: .default, user: user, at: clock.now())
        default:
          let verdict = DeadDevice(hub: .default, registration: id, handle: handle, since: nil, reason: "Unregistered")
          _ = try await registry.drop([verdict], at: clock.now())
        }
      } catch let error as RegistryError {
        #expect(error.code != .unavailable, "\(error)")
      }
    }
    #expect(!owners.isEmpty)
    try await check(registry, users: users, ids: ids, owners: owners)
  }

  /// The owner of what is alive is who completed it last; the tags' table holds what the registrations say, and nothing else.
  private func check(
    _ registry: SQLiteRegistry, users: [String], ids: [RegistrationID], owners: [RegistrationID: String]
  ) async throws {
    var expected: Set<[String]> = []
    for id in Set(ids) {
      guard let registration = try await registry.registration(id, hub: .default) else { continue }
      #expect(owners[id]?.utf8.elementsEqual(registration.user.utf8) == true)
      let named = registration.tags.filter { $0.hasPrefix(Tag.usernamePrefix) }
      #expect(named.map { Array($0.utf8) } == [Array(Tag.username(registration.user).utf8)])
      for tag in registration.tags { expected.insert([id.description, Array(tag.utf8).description]) }
      let holders = try await registry.resolve([query(.device(registration.platform, handle: registration.handle))])[0]
      #expect(holders.map(\.registration) == [id])
    }
    let found = try await registry.read { db in
      try Row.fetchAll(db, sql: "SELECT registration, tag FROM tags").map { row in
        [try #require(RegistrationID(row[0] as Data)).description, Array((row[1] as String).utf8).description]
      }
    }
    #expect(found.count == expected.count && Set(found) == expected)
  }
}
