import FanfareCore
import Registry
import Testing

extension DeviceRegistryConformance {
  /// Listing, revising and expiring registrations.
  static let directory: [Self] = [
    Self("an installation is found by its id, in its hub") { store in
      let other = try #require(HubName("other"))
      let installed = try await store.install("i-1", "alice", "h1", tags: ["news"])
      #expect(try await store.registration(ofInstallation: "i-1", hub: store.hub) == installed)
      #expect(try await store.registration(ofInstallation: "i-1", hub: other) == nil)
      for stranger in ["i-2", "I-1", "", "i-1\0", "i-1\n"] {
        #expect(try await store.registration(ofInstallation: stranger, hub: store.hub) == nil)
      }
    },
    Self("registrations are listed by id, page by page") { store in
      var all: [Registration] = []
      for number in 0..<9 {
        all.append(
          try await store.register(number < 4 ? "alice" : "bob", "h\(number)", tags: number % 2 == 0 ? ["even"] : []))
      }
      _ = try await store.issue(hub: store.hub, handle: "pending", at: .start)
      _ = try await store.register("alice", "h0", tags: ["even"], hub: #require(HubName("other")))
      all.sort { $0.id < $1.id }
      for (audience, expected) in [
        (Audience.everyone, all), (.user("alice"), all.filter { $0.user == "alice" }),
        (.tag("even"), all.filter { $0.tags.contains("even") }),
        (.device(.fcm, handle: "h3"), all.filter { $0.handle == "h3" }),
        (.user("nobody"), []),
      ] {
        for limit in [1, 2, 20] {
          var (found, slice): ([Registration], RegistrationSlice?) = ([], .whole)
          while let rest = slice {
            let page = try await store.list(audience, hub: store.hub, of: rest, limit: limit)
            #expect(page.registrations.count <= limit)
            found += page.registrations
            slice = page.last.flatMap(rest.after)
          }
          #expect(found == expected, "\(audience) by \(limit)")
        }
      }
    },
    Self("a revision keeps unchanged members, and registeredAt with the same handle") { store in
      let later = UnixTime.start + .seconds(60)
      let first = try await store.install("i-1", "alice", "AA", platform: .apns, tags: ["news"])
      let second = try await store.revise(first, "aa", platform: .apns, tags: ["sport"], at: later)
      #expect(second.id == first.id && second.tags == ["installation:i-1", "sport", "username:alice"])
      #expect((second.registeredAt, second.createdAt, second.seenAt) == (.start, .start, later))
      #expect(try await store.registration(first.id, hub: store.hub) == second)
      #expect(try await store.reached(by: .tag("news")) == [])
      #expect(try await store.reached(by: .tag("sport")) == [first.id])
      // A new handle counts as reported, and is taken from its holder.
      let holder = try await store.register("bob", "bb", platform: .apns)
      let third = try await store.revise(second, "BB", platform: .apns, tags: [], at: later + .seconds(1))
      #expect((third.handle, third.registeredAt, third.createdAt) == ("bb", later + .seconds(1), .start))
      #expect(try await store.registration(holder.id, hub: store.hub) == nil)
      // So does registering.
      let fourth = try await store.install("i-1", "alice", "bb", platform: .apns, at: later + .seconds(2))
      #expect(fourth.registeredAt == later + .seconds(2) && fourth.seenAt == fourth.registeredAt)
    },
    Self("a revision of a changed registration is a conflict") { store in
      let first = try await store.install("i-1", "alice", "h1", tags: ["news"])
      let second = try await store.install("i-1", "alice", "h1", tags: ["sport"])
      await expect(.conflict) { try await store.revise(first, "h1", tags: ["lost"]) }
      #expect(try await store.registration(first.id, hub: store.hub) == second)
      try await store.remove(first.id, hub: store.hub, user: "alice", at: .start)
      await expect(.notFound) { try await store.revise(second, "h1", tags: ["lost"]) }
      #expect(try await store.reached(by: .tag("lost")) == [])
    },
    Self("a revision follows the rules of tags and owners") { store in
      let first = try await store.install("i-1", "alice", "h1", tags: ["news"])
      await expect(.forbidden) { try await store.revise(first, "h1", tags: ["username:bob"]) }
      await expect(.forbidden) { try await store.revise(first, "h1", tags: ["installation:i-2"]) }
      await expect(.gone) { try await store.revise(first, "h2", user: "bob", tags: []) }
      #expect(try await store.registration(first.id, hub: store.hub) == first)
    },
    Self("registrations not seen since a moment are expired in steps, and no others") { store in
      let moment = UnixTime.start + .seconds(60)
      let other = try #require(HubName("other"))
      var (old, kept): (Set<RegistrationID>, Set<RegistrationID>) = ([], [])
      for number in 0..<8 {
        old.insert(try await store.register("u\(number)", "old\(number)", tags: ["t"]).id)
        kept.insert(try await store.register("u\(number)", "new\(number)", tags: ["t"], at: moment).id)
      }
      let renewed = try await store.register("alice", "h1", tags: ["t"])
      _ = try await store.complete(renewed.id, "alice", "h1", tags: ["t"], at: moment)
      let revised = try await store.install("i-1", "alice", "h2", tags: ["t"])
      _ = try await store.revise(revised, "h2", tags: ["t"], at: moment)
      let elsewhere = try await store.register("alice", "h1", hub: other)
      let pending = try await store.issue(hub: store.hub, handle: "pending", at: .start)
      kept.formUnion([renewed.id, revised.id])
      var (removed, steps, slice): (Int, Int, RegistrationSlice?) = (0, 0, .whole)
      while let rest = slice {
        let step = try await store.expire(seenBefore: moment, hub: store.hub, of: rest, limit: 5, at: moment)
        #expect(step.removed <= 5)
        (removed, steps, slice) = (removed + step.removed, steps + 1, step.last.flatMap(rest.after))
      }
      #expect(removed == old.count && steps >= 4)
      #expect(try await store.reached(by: .tag("t")) == kept)
      for id in old { #expect(try await store.registration(id, hub: store.hub) == nil) }
      #expect(try await store.registration(elsewhere.id, hub: other) == elsewhere)
      _ = try await store.complete(pending, "alice", "pending", at: .start + .seconds(61))
    },
    Self("an installation ends at the time that it gave, with its templates") { store in
      let (hub, end) = (store.hub, UnixTime.start + .seconds(60))
      func request(_ number: Int, until end: UnixTime?) -> DeviceRequest {
        DeviceRequest(
          installation: "i-\(number)", hub: hub, user: "ann", platform: .fcm, handle: "h\(number)",
          profile: DeviceProfile(azure: ["service": "Gcm"]),
          templates: [.init(.test("t"), azure: ["expiry": "0"])], validUntil: end)
      }
      func removed(at seconds: Int) async throws -> Int {
        let moment = UnixTime.start + .seconds(seconds)
        return try await store.expire(seenBefore: .start, hub: hub, of: .whole, limit: 99, at: moment).removed
      }
      for number in 0..<3 { _ = try await store.install(request(number, until: number == 0 ? nil : end), at: .start) }
      let rows = try await store.registrations(ofInstallation: "i-1", hub: hub)
      #expect(rows.map(\.validUntil) == [end, end])
      #expect(rows.map { $0.profile?.azure } == [["service": "Gcm"], ["service": "Gcm", "expiry": "0"]])
      #expect(try await removed(at: 59) == 0)
      _ = try await store.install(request(2, until: end + .seconds(60)), at: .start + .seconds(30))
      #expect(try await removed(at: 60) == 2)
      #expect(try await store.registrations(ofInstallation: "i-1", hub: hub).isEmpty)
      let former = try #require(try await store.registration(ofInstallation: "i-2", hub: hub))
      let revised = try await store.revise(former, by: request(2, until: nil), at: .start + .seconds(90))
      #expect(revised.validUntil == nil)
      #expect(try await store.registration(ofInstallation: "i-2", hub: hub) == revised)
      #expect(try await removed(at: 86_400) == 0)
      let graves = try await store.tombstones(hub: hub, since: .start, cause: .expired, after: nil, limit: 9)
      #expect(Set(graves.map(\.registration)) == Set(rows.map(\.id)))
    },
    Self("the parts of an installation that was removed as a whole are told apart") { store in
      let hub = store.hub
      func install(_ names: [String]) async throws {
        _ = try await store.install(
          DeviceRequest(
            installation: "i-1", hub: hub, user: "ann", platform: .fcm, handle: "h",
            templates: names.map { .init(.test($0)) }), at: .start)
      }
      try await install(["a", "b"])
      let first = try await store.registrations(ofInstallation: "i-1", hub: hub)
      try await install(["b"])
      let second = try await store.registrations(ofInstallation: "i-1", hub: hub)
      try await store.remove(second[0].id, hub: hub, user: "ann", at: .start)
      #expect(try await store.removedTogether(second[1].id, hub: hub))
      let template = try #require(first.first { row in !second.contains { $0.id == row.id } })
      for id in [template.id, second[0].id, .random()] { #expect(try await !store.removedTogether(id, hub: hub)) }
    },
    Self("a changed registration is seen after the one that it replaces") { store in
      let first = try await store.register("ann", "h", tags: ["a"])
      let second = try await store.complete(first.id, "ann", "h", tags: ["b"], at: .start)
      let third = try await store.complete(first.id, "ann", "h", tags: ["a"], at: .start)
      #expect(first.seenAt < second.seenAt && second.seenAt < third.seenAt)
      #expect(try await store.registration(first.id, hub: store.hub) == third)
    },
    Self("a device expires as a whole, when none of its registrations was seen since") { store in
      let native = try await store.register("ann", "h")
      let first = try await store.register("ann", "h", template: "a")
      let second = try await store.register("ann", "h", template: "b", at: .start + .seconds(10))
      let other = try await store.register("ann", "h2", template: "a", at: .start + .seconds(20))
      func expire(_ seconds: Int) async throws -> Int {
        let moment = UnixTime.start + .seconds(seconds)
        return try await store.expire(seenBefore: moment, hub: store.hub, of: .whole, limit: 9, at: moment).removed
      }
      #expect(try await expire(10) == 0, "the app still registers one of the templates")
      for one in [native, first, second] { #expect(try await store.registration(one.id, hub: store.hub) == one) }
      #expect(try await expire(11) == 3)
      #expect(try await store.list(.everyone, hub: store.hub, of: .whole, limit: 9).registrations == [other])
      let graves = try await store.tombstones(hub: store.hub, since: .start, cause: .expired, after: nil, limit: 9)
      #expect(Set(graves.map(\.registration)) == [native.id, first.id, second.id])
    },
  ]
}

extension RegistrationDirectory {
  /// Revises an installation of the default hub.
  fileprivate func revise(
    _ former: Registration, _ handle: String, platform: Platform = .fcm, user: String = "alice", tags: [String],
    at now: UnixTime = .start
  ) async throws -> Registration {
    try await revise(
      former,
      by: DeviceRequest(
        installation: "i-1", hub: .default, user: user, platform: platform, handle: handle, tags: tags),
      at: now)
  }
}
