import FanfareCore
import Foundation
import GRDB
import Store
import Support
import Testing

@testable import Registry

/// Long random histories of changes by apps and services, with few users and handles, so that they conflict.
@Suite(.timeLimit(.minutes(2))) struct RandomHistoryTests {
  private static let tagRows = PreparedStatement("SELECT registration, tag FROM tags")

  @Test(arguments: RegistryEngine.available, [1, 2, 3] as [UInt64])
  func historyLeavesOneHolderPerHandleAndItsTags(engine: RegistryEngine, seed: UInt64) async throws {
    try await engine.withRegistry { registry, _ in
      try await live(with: registry, seed: seed) {
        try await registry.read { session in
          try session.all(Self.tagRows) { TagRow(registration: try $0.id(0), tag: Array(try $0.text(1).utf8)) }
        }
      }
      guard engine == .postgreSQL else { return }
      // The tables of handles and installations also match the registrations.
      let strays = try await registry.readDatabase { connection in
        try connection.execute(
          """
          SELECT (SELECT count(*) FROM handles h FULL JOIN registrations r ON r.hub = h.hub AND r.id = h.registration AND r.handle = h.handle
            WHERE h.hub IS NULL AND r.handle IS NOT NULL OR r.hub IS NULL OR h.platform IS DISTINCT FROM r.platform)
          + (SELECT count(*) FROM installations i FULL JOIN registrations r ON r.hub = i.hub AND r.id = i.registration
            WHERE i.installation IS DISTINCT FROM r.installation)
          """
        ).integer(0, 0)
      }
      #expect(strays == 0)
    }
  }

  /// A row of the table of tags, with the bytes of the tag.
  private struct TagRow: Hashable {
    let registration: RegistrationID
    let tag: [UInt8]
  }

  private func live(
    with registry: any DeviceRegistry, seed: UInt64, tagRows: () async throws -> [TagRow]
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let clock = ManualClock()
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
          ids.append(
            try await registry.issue(hub: .default, handle: Bool.random(using: &random) ? handle : nil, at: clock.now())
          )
        case 3...6:
          let application = DeviceRequest(
            id: id, hub: .default, user: user, platform: platform, handle: handle, tags: tags)
          owners[id] = try await registry.complete(application, at: clock.now()).user
        case 7:
          let application = DeviceRequest(
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
    try await check(registry, ids: ids, owners: owners, tagRows: try await tagRows())
  }

  /// Checks that each live registration belongs to the user who completed it last, and that the table of tags matches
  /// the registrations.
  private func check(
    _ registry: any DeviceRegistry, ids: [RegistrationID], owners: [RegistrationID: String], tagRows: [TagRow]
  ) async throws {
    var expected: Set<TagRow> = []
    for id in Set(ids) {
      guard let registration = try await registry.registration(id, hub: .default) else { continue }
      #expect(owners[id]?.utf8.elementsEqual(registration.user.utf8) == true)
      let named = registration.tags.filter { $0.hasPrefix(Tag.usernamePrefix) }
      #expect(named.map { Array($0.utf8) } == [Array(Tag.username(registration.user).utf8)])
      for tag in registration.tags { expected.insert(TagRow(registration: id, tag: Array(tag.utf8))) }
      let holders = try await registry.resolve([query(.device(registration.platform, handle: registration.handle))])[0]
      #expect(holders.map(\.registration) == [id])
    }
    #expect(tagRows.count == expected.count && Set(tagRows) == expected)
  }
}
