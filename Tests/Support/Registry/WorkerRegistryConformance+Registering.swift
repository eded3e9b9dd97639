import FanfareCore
import Testing

extension WorkerRegistryConformance {
  /// Issuing, completing and removing ids.
  static let registering: [Self] = [
    Self("of concurrent changes on one condition exactly one is made") { store in
      let former = try await store.register("ann", "h", tags: ["former"])
      let isFormer: RegistrationCondition = { $0 == former }
      await expect(.changed) {
        try await store.remove(former.id, hub: store.hub, user: "ann", if: { _ in false }, at: .start)
      }
      #expect(try await store.registration(former.id, hub: store.hub) == former)
      let outcomes = await withTaskGroup(of: Result<Registration?, any Error>.self) { group in
        for number in 0..<12 {
          group.addTask {
            do {
              if number % 4 == 0 {
                try await store.remove(former.id, hub: store.hub, user: "ann", if: isFormer, at: .start)
                return .success(nil)
              }
              // Each with another handle, so that nothing but the registration itself orders them.
              let request = DeviceRequest(
                id: former.id, hub: store.hub, user: "ann", platform: .fcm, handle: "h\(number)", tags: ["t\(number)"])
              return .success(try await store.complete(request, if: isFormer, at: .start))
            } catch { return .failure(error) }
          }
        }
        return await group.reduce(into: [Result<Registration?, any Error>]()) { $0.append($1) }
      }
      let made = outcomes.compactMap { try? $0.get() }
      #expect(outcomes.count(where: { if case .success = $0 { true } else { false } }) == 1)
      #expect(try await store.registration(former.id, hub: store.hub) == made.first)
      for case .failure(let error) in outcomes {
        let code = (error as? RegistryError)?.code
        #expect(code == .changed || code == .notFound, "\(error)")
      }
    },
    Self("a conditional change needs a registration") { store in
      let id = try await store.issue(hub: store.hub, handle: nil, at: .start)
      let request = DeviceRequest(
        id: id, hub: store.hub, user: "ann", platform: .fcm, handle: "h", tags: [], isTrusted: true)
      await expect(.notFound) { try await store.complete(request, if: { _ in true }, at: .start) }
      #expect(try await store.reached(by: .user("ann")) == [])
      _ = try await store.complete(request, at: .start)
      #expect(try await store.complete(request, if: { $0.handle == "h" }, at: .start).id == id)
    },
    Self("an id is issued, completed and found") { store in
      let id = try await store.issue(hub: store.hub, handle: nil, at: .start)
      #expect(try await store.registration(id, hub: store.hub) == nil, "pending")
      let stored = try await store.complete(id, "alice", "h1", tags: ["news", "b", "news", "username:alice"])
      let expected = Registration(
        id: id, hub: store.hub, user: "alice", platform: .fcm, handle: "h1", tags: ["b", "news", "username:alice"],
        installation: nil, registeredAt: .start, createdAt: .start)
      #expect(stored == expected)
      #expect(try await store.registration(id, hub: store.hub) == expected)
      #expect(try await store.issue(hub: store.hub, handle: nil, at: .start) != id)
    },
    Self("issuing for a held handle returns its id, in any letter case for APNs") { store in
      let iPhone = try await store.register("alice", "ABCDEF01", platform: .apns)
      #expect(iPhone.handle == "abcdef01")
      for form in ["abcdef01", "ABCDEF01", "AbCdEf01"] {
        #expect(try await store.issue(hub: store.hub, handle: form, at: .start) == iPhone.id)
      }
      let android = try await store.register("alice", "Token:A")
      #expect(try await store.issue(hub: store.hub, handle: "Token:A", at: .start) == android.id)
      #expect(try await store.issue(hub: store.hub, handle: "token:a", at: .start) != android.id)
    },
    Self("an issued id is issued again for the same handle, with its full lifetime") { store in
      let id = try await store.issue(hub: store.hub, handle: "AB01", at: .start)
      #expect(try await store.issue(hub: store.hub, handle: "ab01", at: .start + .seconds(3000)) == id)
      _ = try await store.complete(id, "alice", "ab01", platform: .apns, at: .start + .seconds(6000))
    },
    Self("an issued id expires after an hour and releases the handle") { store in
      let id = try await store.issue(hub: store.hub, handle: "h1", at: .start)
      let punctual = try await store.issue(hub: store.hub, handle: "h2", at: .start)
      _ = try await store.complete(punctual, "bob", "h2", at: .start + .milliseconds(3_599_999))
      let hour = UnixTime.start + .seconds(3600)
      await expect(.gone) { try await store.complete(id, "alice", "h1", at: hour) }
      #expect(try await store.issue(hub: store.hub, handle: "h1", at: hour) != id)
    },
    Self("issuing merges registrations of one handle into the newest") { store in
      // One text can be the handle of two devices only while the platform is unknown.
      let older = try await store.register("alice", "AB01", platform: .fcm)
      let newer = try await store.register("alice", "ab01", platform: .apns, at: .start + .seconds(1))
      #expect(try await store.issue(hub: store.hub, handle: "AB01", at: .start + .seconds(2)) == newer.id)
      #expect(try await store.reached(by: .user("alice")) == [newer.id])
      await expect(.gone) { try await store.complete(older.id, "alice", "AB01", at: .start + .seconds(3)) }
    },
    Self("completing again replaces platform, handle and tags") { store in
      let first = try await store.register("alice", "h1", tags: ["old", "both"])
      let later = UnixTime.start + .seconds(9)
      let again = try await store.complete(first.id, "alice", "AA", platform: .apns, tags: ["both", "new"], at: later)
      #expect(again.handle == "aa" && again.platform == .apns && again.registeredAt == later)
      #expect(again.createdAt == .start)
      #expect(again.tags == ["both", "new", "username:alice"])
      #expect(try await store.registration(first.id, hub: store.hub) == again)
      #expect(try await store.reached(by: .tag("old")) == [])
      #expect(try await store.reached(by: .tag("new")) == [first.id])
      #expect(try await store.reached(by: .device(.fcm, handle: "h1")) == [])
    },
    Self("an id that was never issued is gone") { store in
      await expect(.gone) { try await store.complete(.random(), "alice", "h1") }
    },
    Self("only the owner can remove, and only once") { store in
      let registration = try await store.register("alice", "h1", tags: ["news"])
      let pending = try await store.issue(hub: store.hub, handle: nil, at: .start)
      await expect(.notFound) { try await store.remove(registration.id, hub: store.hub, user: "bob", at: .start) }
      await expect(.notFound) { try await store.remove(pending, hub: store.hub, user: "alice", at: .start) }
      await expect(.notFound) { try await store.remove(.random(), hub: store.hub, user: "alice", at: .start) }
      #expect(try await store.reached(by: .tag("news")) == [registration.id])
      try await store.remove(registration.id, hub: store.hub, user: "alice", at: .start)
      #expect(try await store.reached(by: .tag("news")) == [])
      #expect(try await store.registration(registration.id, hub: store.hub) == nil)
      await expect(.notFound) { try await store.remove(registration.id, hub: store.hub, user: "alice", at: .start) }
      await expect(.gone) { try await store.complete(registration.id, "alice", "h1") }
    },
    Self("an installation is registered, replaced and tagged") { store in
      let first = try await store.install("i-1", "alice", "AA", platform: .apns, tags: ["news"])
      #expect(first.tags == ["installation:i-1", "news", "username:alice"])
      #expect(first.installation == "i-1" && first.handle == "aa")
      let second = try await store.install("i-1", "alice", "bb", platform: .apns, at: .start + .seconds(1))
      #expect(second.id == first.id && second.handle == "bb" && second.tags == ["installation:i-1", "username:alice"])
      #expect(try await store.reached(by: .tag("installation:i-1")) == [first.id])
      #expect(try await store.reached(by: .tag("news")) == [])
      #expect(try await store.registration(first.id, hub: store.hub) == second)
      // After completion by handle the registration has no installation, and the installation gets a new one.
      #expect(try await store.complete(first.id, "alice", "bb", platform: .apns).installation == nil)
      let third = try await store.install("i-1", "alice", "bb", platform: .apns)
      #expect(third.id != first.id)
      #expect(try await store.reached(by: .user("alice")) == [third.id])
    },
    Self("another installation's tag is refused") { store in
      let device = try await store.install("i-1", "alice", "aa", platform: .apns)
      let id = try await store.issue(hub: .default, handle: "h2", at: .start)
      await expect(.forbidden) { try await store.complete(id, "bob", "h2", tags: ["installation:i-1"]) }
      await expect(.forbidden) { try await store.install("i-2", "bob", "h3", tags: ["installation:i-1"]) }
      #expect(try await store.reached(by: .tag("installation:i-1")) == [device.id])
      _ = try await store.install("i-1", "alice", "aa", platform: .apns, tags: ["installation:i-1"])
    },
    Self("hubs are independent") { store in
      let other = try #require(HubName("other"))
      let here = try await store.register("alice", "h1", tags: ["news"])
      let there = try await store.register("alice", "h1", tags: ["news"], hub: other)
      #expect(try await store.reached(by: .user("alice")) == [here.id])
      #expect(try await store.reached(by: .tag("news"), hub: other) == [there.id])
      #expect(try await store.registration(here.id, hub: other) == nil)
      #expect(try await store.reached(by: .registration(here.id), hub: other) == [])
      await expect(.gone) { try await store.complete(here.id, "alice", "h1", hub: other) }
      await expect(.notFound) { try await store.remove(here.id, hub: other, user: "alice", at: .start) }
    },
    Self("the check of a working store succeeds") { store in try await store.check() },
  ]
}
