import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// Operators' questions.
  static let inquiries: [Self] = [
    Self("registrations with a tag are counted up to a limit, in one hub") { store in
      let other = try #require(HubName("other"))
      for number in 0..<5 { _ = try await store.register("user\(number)", "h\(number)", tags: ["news"]) }
      _ = try await store.register("user9", "h1", tags: ["news"], hub: other)
      #expect(try await store.count(tag: "news", hub: store.hub, limit: 100) == 5)
      #expect(try await store.count(tag: "news", hub: store.hub, limit: 3) == 3)
      #expect(try await store.count(tag: "news", hub: other, limit: 100) == 1)
      #expect(try await store.count(tag: "username:user1", hub: store.hub, limit: 100) == 1)
      #expect(try await store.count(tag: "none", hub: store.hub, limit: 100) == 0)
    },
    Self("a user's removed devices are listed, the latest first, with what can be restored") { store in
      var ids: [Registration] = []
      for number in 0..<3 { ids.append(try await store.register("bob", "b\(number)")) }
      let others = try await store.register("carol", "c")
      try await store.remove(ids[0].id, hub: store.hub, user: "bob", at: .start + .seconds(1))
      try await store.remove(others.id, hub: store.hub, user: "carol", at: .start + .seconds(1))
      _ = try await store.drop(
        [
          DeadDevice(hub: store.hub, registration: ids[1].id, handle: ids[1].handle, since: nil, reason: "Unregistered")
        ],
        at: .start + .seconds(2))
      let now = UnixTime.start + .seconds(3)
      let all = try await store.removed(from: "bob", hub: store.hub, before: nil, limit: 9, at: now)
      #expect(all.map(\.registration) == [ids[1].id, ids[0].id])
      #expect(all.map(\.cause) == ["dead", "removed"] && all.map(\.detail) == ["Unregistered", ""])
      #expect(all.map(\.at) == [.start + .seconds(2), .start + .seconds(1)])
      #expect(all[0].quarantine?.handle == ids[1].handle && all[0].quarantine?.platform == ids[1].platform)
      #expect(all[1].quarantine == nil)
      let first = try await store.removed(from: "bob", hub: store.hub, before: nil, limit: 1, at: now)
      let second = try await store.removed(from: "bob", hub: store.hub, before: first.last?.position, limit: 1, at: now)
      #expect(first + second == all)
      let later = try #require(all[0].quarantine).endsAt
      let ended = try await store.removed(from: "bob", hub: store.hub, before: nil, limit: 1, at: later)
      #expect(ended.first?.quarantine == nil)
      let elsewhere = try await store.removed(
        from: "bob", hub: try #require(HubName("other")), before: nil, limit: 9, at: now)
      #expect(elsewhere.isEmpty)
    },
  ]
}
