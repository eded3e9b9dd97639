import FanfareCore
import Testing

extension WorkerRegistryConformance {
  /// The devices of audiences.
  static let resolving: [Self] = [
    Self("each audience reaches its devices on the queried platforms") { store in
      let iPhone = try await store.register("alice", "AB", platform: .apns, tags: ["news"])
      let android = try await store.register("alice", "Token:A", tags: ["news", "beta"])
      let windows = try await store.register(
        "bob", "https://db5.notify.windows.com/?t=A", platform: .wns, tags: ["news"])
      let queries: [(Audience, PlatformSet, Set<RegistrationID>)] = [
        (.user("alice"), .all, [iPhone.id, android.id]),
        (.user("alice"), PlatformSet(.apns), [iPhone.id]),
        (.user("alice"), PlatformSet(.wns), []),
        (.user("alice"), [], []),
        (.user("nobody"), .all, []),
        (.tag("news"), .all, [iPhone.id, android.id, windows.id]),
        (.tag("news"), [PlatformSet(.wns), PlatformSet(.fcm)], [android.id, windows.id]),
        (.tag("beta"), .all, [android.id]),
        (.tag("NEWS"), .all, []),
        (.tag("username:bob"), .all, [windows.id]),
        (.registration(android.id), .all, [android.id]),
        (.registration(android.id), PlatformSet(.apns), []),
        (.registration(.random()), .all, []),
        (.device(.apns, handle: "aB"), .all, [iPhone.id]),
        (.device(.fcm, handle: "ab"), .all, []),
        (.device(.fcm, handle: "token:a"), .all, []),
        (.device(.fcm, handle: "Token:A"), .all, [android.id]),
        (.device(.fcm, handle: "Token:A"), PlatformSet(.apns), []),
        (.device(.wns, handle: windows.handle), .all, [windows.id]),
        (.user("alice"), .all, [iPhone.id, android.id]),
      ]
      let answers = try await store.resolve(
        queries.map { AudienceQuery(hub: store.hub, audience: $0.0, platforms: $0.1) })
      #expect(answers.count == queries.count)
      for ((audience, platforms, expected), targets) in zip(queries, answers) {
        #expect(
          targets.count == expected.count && Set(targets.map(\.registration)) == expected, "\(audience) on \(platforms)"
        )
      }
      let target = Target(registration: iPhone.id, platform: .apns, handle: "ab", registeredAt: .start)
      #expect(answers[1] == [target])
      #expect(try await store.resolve([]) == [])
    },
    Self("a registration is reached only if it was its user's by the moment") { store in
      let kept = try await store.register("alice", "h1")
      let taken = try await store.register("bob", "h2")
      let later = UnixTime.start + .seconds(60)
      _ = try await store.complete(kept.id, "alice", "h1-rotated", at: later)
      _ = try await store.complete(taken.id, "carol", "h2", at: later)
      let moments: [UnixTime?] = [nil, .start + .milliseconds(-1), .start, later]
      let answers = try await store.resolve(
        moments.flatMap { moment in
          [kept.id, taken.id].map {
            AudienceQuery(hub: store.hub, audience: .registration($0), platforms: .all, createdBefore: moment)
          }
        })
      #expect(answers.map(\.count) == [1, 1, 0, 0, 1, 0, 1, 1])
    },
    Self("no more devices of an audience are looked up than asked for") { store in
      let crowd = try await (0..<40).asyncMap { try await store.register("crowd", "c\($0)").id }
      let few = try await (0..<4).asyncMap { try await store.register("few", "f\($0)").id }
      func ask(_ limit: Int) async throws -> [AudiencePage] {
        try await store.resolve(
          ["nobody", "crowd", "few", "crowd"].map {
            AudienceQuery(hub: store.hub, audience: .user($0), platforms: .all)
          } + [AudienceQuery(hub: store.hub, audience: .registration(crowd[39]), platforms: .all)], limit: limit)
      }
      for limit in [1, 3, 4, 10, 39] {
        let pages = try await ask(limit)
        #expect(pages.map { $0.last == nil } == [true, false, limit >= 4, false, true], "limit \(limit)")
        #expect(pages.map(\.targets.count) == [0, limit, min(4, limit), limit, 1])
        #expect(pages[1].targets.allSatisfy { crowd.contains($0.registration) })
      }
      let whole = try await ask(40)
      #expect(whole.allSatisfy { $0.last == nil })
      #expect(whole.map { Set($0.targets.map(\.registration)) } == [[], Set(crowd), Set(few), Set(crowd), [crowd[39]]])
    },
    Self("a batch may span hubs") { store in
      let other = try #require(HubName("other"))
      let here = try await store.register("alice", "h1")
      let there = try await store.register("alice", "h2", hub: other)
      let answers = try await store.resolve(
        [other, .default, other].map { AudienceQuery(hub: $0, audience: .user("alice"), platforms: .all) })
      #expect(answers.map { $0.map(\.registration) } == [[there.id], [here.id], [there.id]])
    },
    Self("no audience reaches an issued id") { store in
      let id = try await store.issue(hub: store.hub, handle: "ab01", at: .start)
      #expect(try await store.reached(by: .registration(id)) == [])
      #expect(try await store.reached(by: .device(.apns, handle: "ab01")) == [])
      #expect(try await store.reached(by: .device(.fcm, handle: "ab01")) == [])
    },
    Self("names are compared byte for byte, whatever they contain") { store in
      let names = ["\"quoted\"", "back\\slash", "it's", "%", "_", "[]", "emoji 🦄", "null", "1"]
      var ids: [String: RegistrationID] = [:]
      for (number, name) in names.enumerated() { ids[name] = try await store.register(name, "h\(number)").id }
      for name in names { #expect(try await store.reached(by: .user(name)) == Set([ids[name]].compactMap(\.self))) }
      for stranger in ["1\0", "null\0x", "1\n", "%\u{7F}", ""] {
        #expect(try await store.reached(by: .user(stranger)) == [])
      }
    },
  ]

  /// Devices reported dead.
  static let dropping: [Self] = [
    Self("a report drops only registrations that are older than it") { store in
      let moment = UnixTime.start + .seconds(60)
      let older = try await store.register("alice", "h1", tags: ["t"], at: .start)
      let same = try await store.register("alice", "h2", tags: ["t"], at: moment)
      let newer = try await store.register("alice", "h3", tags: ["t"], at: moment + .milliseconds(1))
      let undated = try await store.register("alice", "h4", tags: ["t"], at: moment + .seconds(9))
      let rotated = try await store.register("alice", "h5", tags: ["t"], at: .start)
      _ = try await store.complete(rotated.id, "alice", "h6", tags: ["t"], at: .start)
      func verdict(_ registration: Registration, since: UnixTime?) -> DeadDevice {
        DeadDevice(
          hub: store.hub, registration: registration.id, handle: registration.handle, since: since,
          reason: "Unregistered")
      }
      let unknown = DeadDevice(
        hub: store.hub, registration: .random(), handle: "h1", since: nil, reason: "Unregistered")
      let dropped = try await store.drop(
        [
          verdict(older, since: moment), verdict(same, since: moment), verdict(newer, since: moment),
          verdict(undated, since: nil),
          verdict(rotated, since: nil), unknown, verdict(older, since: moment),
        ], at: moment + .seconds(10))
      #expect(dropped.sorted() == [older.id, undated.id].sorted())
      #expect(try await store.reached(by: .tag("t")) == [same.id, newer.id, rotated.id])
      await expect(.gone) { try await store.complete(older.id, "alice", "h1", at: moment + .seconds(11)) }
      #expect(try await store.drop([], at: moment) == [])
    },
    Self("a handle that the app reported after the moment of truth is kept") { store in
      let registration = try await store.register("alice", "h1")
      _ = try await store.complete(registration.id, "alice", "h1", at: .start + .seconds(120))
      let verdict = DeadDevice(
        hub: store.hub, registration: registration.id, handle: "h1", since: .start + .seconds(60),
        reason: "Unregistered")
      #expect(try await store.drop([verdict], at: .start + .seconds(130)) == [])
      #expect(try await store.reached(by: .user("alice")) == [registration.id])
    },
    Self("a report applies to one hub") { store in
      let other = try #require(HubName("other"))
      let registration = try await store.register("alice", "h1")
      let verdict = DeadDevice(
        hub: other, registration: registration.id, handle: "h1", since: nil, reason: "Unregistered")
      #expect(try await store.drop([verdict], at: .start) == [])
    },
    Self("a dropped device can register again") { store in
      let former = try await store.install("i-1", "alice", "h1")
      let verdict = DeadDevice(
        hub: store.hub, registration: former.id, handle: "h1", since: nil, reason: "Unregistered")
      #expect(try await store.drop([verdict], at: .start) == [former.id])
      let next = try await store.install("i-1", "alice", "h1")
      #expect(next.id != former.id)
      #expect(try await store.reached(by: .user("alice")) == [next.id])
    },
  ]
}

extension Sequence {
  /// Transforms the elements one after another.
  fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async rethrows -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
