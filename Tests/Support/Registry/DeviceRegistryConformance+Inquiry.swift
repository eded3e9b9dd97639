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
    Self("devices whose handles are dead are listed, the earliest first, page by page") { store in
      var devices: [Registration] = []
      for number in 0..<4 { devices.append(try await store.register("user\(number)", "h\(number)")) }
      let template = try await store.register("user0", "h0", template: "a")
      func drop(_ device: Registration, _ seconds: Int) async throws {
        let verdict = DeadDevice(
          hub: store.hub, registration: device.id, handle: device.handle, since: nil, reason: "Unregistered")
        _ = try await store.drop([verdict], at: .start + .seconds(seconds))
      }
      try await drop(devices[2], 1)
      try await drop(devices[0], 2)
      try await store.remove(devices[1].id, hub: store.hub, user: "user1", at: .start + .seconds(3))
      let now = UnixTime.start + .seconds(4)
      var (found, last): ([RemovedRegistration], RemovedRegistration.Position?) = ([], nil)
      repeat {
        let page = try await store.dead(hub: store.hub, after: last, limit: 1, at: now)
        found += page
        last = page.last?.position
      } while last != nil
      #expect(found.map(\.registration) == [devices[2].id] + [devices[0].id, template.id].sorted())
      #expect(found.allSatisfy { $0.cause == "dead" && $0.detail == "Unregistered" })
      #expect(found.map { $0.quarantine?.handle } == ["h2", "h0", "h0"], "a template has the handle, not its address")
      #expect(found.allSatisfy { $0.quarantine?.platform == .fcm })
      #expect(try await store.dead(hub: store.hub, after: nil, limit: 9, at: now) == found)
      let other = try #require(HubName("other"))
      #expect(try await store.dead(hub: other, after: nil, limit: 9, at: now).isEmpty)
      // A device that registers again is no longer dead.
      _ = try await store.complete(devices[2].id, "user2", "h2", at: now)
      #expect(try await store.dead(hub: store.hub, after: nil, limit: 9, at: now) == Array(found.dropFirst()))
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
