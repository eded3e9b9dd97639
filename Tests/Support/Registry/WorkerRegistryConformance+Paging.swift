import FanfareCore
import Testing

extension WorkerRegistryConformance {
  /// Pages of audiences.
  static let paging: [Self] = [
    Self("expressions, tags and everyone reach exactly their devices") { store in
      var ids: [String: RegistrationID] = [:]
      for (name, tags) in [
        ("none", []), ("a", ["a"]), ("b", ["b"]), ("ab", ["a", "b"]), ("bc", ["b", "c"]), ("abc", ["a", "b", "c"]),
      ] {
        ids[name] = try await store.register(name, "h-\(name)", tags: tags).id
      }
      _ = try await store.issue(hub: store.hub, handle: "pending", at: .start)
      for (audience, names) in [
        ("a", "a ab abc"), ("!a", "none b bc"), ("a && b", "ab abc"), ("a || c", "a ab bc abc"), ("a && !b", "a"),
        ("!a && b", "b bc"),
        ("a || b && c", "a ab bc abc"), ("(a || b) && c", "bc abc"), ("!a && !b && !c", "none"), ("!(a || b)", "none"),
        ("a && !(b && c)", "a ab"), ("(a && c) || (b && !a)", "b bc abc"), ("!(a && b) && (b || c)", "b bc"), ("x", ""),
        ("x && a", ""),
        ("a || !a", "none a b ab bc abc"), ("a && !a", ""), ("username:ab || username:none", "none ab"),
        ("username:ab && a", "ab"),
        ("!!a", "a ab abc"), ("(a || b) && (a || c)", "a ab bc abc"), ("a && b && c", "abc"),
        ("a || b || c", "a b ab bc abc"),
      ] as [(String, String)] {
        try await expectReached(.expression(TagExpression(audience)), Self.ids(names, ids), in: store)
      }
      try await expectReached(.tags(["a", "c"]), Self.ids("a ab bc abc", ids), in: store)
      try await expectReached(.tags(["c", "username:a", "x"]), Self.ids("a bc abc", ids), in: store)
      try await expectReached(.everyone, Set(ids.values), in: store)
      try await expectReached(.tag("b"), Self.ids("b ab bc abc", ids), in: store)
      try await expectReached(.user("ab"), Self.ids("ab", ids), in: store)
      try await expectReached(.registration(#require(ids["b"])), Self.ids("b", ids), in: store)
      try await expectReached(.registration(.random()), [], in: store)
      try await expectReached(.device(.fcm, handle: "h-bc"), Self.ids("bc", ids), in: store)
      try await expectReached(.device(.fcm, handle: "pending"), [], in: store)
    },
    Self("tags are compared byte for byte in pages") { store in
      let names = ["ren\u{E9}", "rene\u{301}", "it's \"quoted\" \\", "%", "a b"]
      for (number, name) in names.enumerated() {
        let id = try await store.register(name, "h\(number)", tags: ["all"]).id
        let tag = TagExpression.tag(Tag.username(name))
        try await expectReached(.expression(tag), [id], in: store)
        try await expectReached(.expression(.all([.tag("all"), tag])), [id], in: store)
        try await expectReached(.tags([Tag.username(name), "nobody"]), [id], in: store)
      }
      try await expectReached(.user("%\0"), [], in: store)
      try await expectReached(.tag("all\0"), [], in: store)
      #expect(try await store.reached(by: .expression(.all([.tag("all"), .not(.tag("all\0"))]))).count == names.count)
    },
    Self("pages have only the platforms and the hub of the query") { store in
      let other = try #require(HubName("other"))
      let iPhone = try await store.register("alice", "AB", platform: .apns, tags: ["news"])
      let android = try await store.register("alice", "t", tags: ["news", "beta"])
      let there = try await store.register("alice", "t", tags: ["news", "beta"], hub: other)
      let expression = Audience.expression(try TagExpression("news && !muted"))
      for audience in [expression, Audience.everyone, .tags(["beta", "news"]), .tag("news"), .user("alice")] {
        try await expectReached(audience, [iPhone.id, android.id], in: store)
        try await expectReached(audience, [iPhone.id], on: PlatformSet(.apns), in: store)
        try await expectReached(audience, [], on: PlatformSet(.wns), in: store)
        try await expectReached(audience, [], on: [], in: store)
        try await expectReached(audience, [there.id], hub: other, in: store)
      }
    },
    Self("the target of a page is complete") { store in
      let iPhone = try await store.register("alice", "AB", platform: .apns, tags: ["a", "b"])
      let again = UnixTime.start + .seconds(5)
      _ = try await store.complete(iPhone.id, "alice", "CD", platform: .apns, tags: ["a", "b"], at: again)
      let target = Target(registration: iPhone.id, platform: .apns, handle: "cd", registeredAt: again)
      for audience in [
        .everyone, .tags(["a", "b"]), .tag("a"), .registration(iPhone.id), .device(.apns, handle: "CD"),
      ]
        as [Audience]
      {
        #expect(try await store.walk(audience) == [target])
      }
    },
    Self(
      "a walk includes what was created by its moment: kept when the user registers again, anew when another takes over"
    ) {
      store in
      let later = UnixTime.start + .seconds(60)
      let early = try await store.register("alice", "h1", tags: ["news"])
      let late = try await store.register("bob", "h2", tags: ["news"], at: later)
      let installed = try await store.install("i-1", "carol", "h3", tags: ["news"])
      let taken = try await store.register("dave", "h4", tags: ["news"])
      let handed = try await store.install("i-2", "erin", "h5", tags: ["news"])
      let renewed = try await store.complete(early.id, "alice", "h1-rotated", tags: ["news", "more"], at: later)
      #expect((renewed.createdAt, renewed.registeredAt) == (.start, later))
      #expect(try await store.install("i-1", "carol", "h3", tags: ["news"], at: later).createdAt == .start)
      #expect(try await store.complete(taken.id, "frank", "h4", tags: ["news"], at: later).createdAt == later)
      #expect(try await store.install("i-2", "grace", "h5", tags: ["news"], at: later).createdAt == later)
      #expect(try await store.registration(early.id, hub: store.hub) == renewed)
      let old = [early.id, installed.id]
      let (justBefore, justBeforeLater) = (UnixTime.start + .milliseconds(-1), later + .milliseconds(-1))
      let expression = Audience.expression(try TagExpression("news && !muted"))
      for audience in [Audience.everyone, .tag("news"), .tags(["more", "news"]), expression] {
        for (moment, expected) in [
          (justBefore, []), (.start, old), (justBeforeLater, old), (later, old + [late.id, taken.id, handed.id]),
        ] as [(UnixTime, [RegistrationID])] {
          let found = try await store.walk(audience, createdBefore: moment).map(\.registration)
          #expect(found == expected.sorted(), "\(audience)")
        }
      }
      #expect(try await store.walk(.registration(late.id), createdBefore: .start) == [])
      #expect(try await store.walk(.device(.fcm, handle: "h2"), createdBefore: .start) == [])
    },
    Self("a registration is created when its id is completed, not issued") { store in
      let id = try await store.issue(hub: store.hub, handle: "h1", at: .start)
      let later = UnixTime.start + .seconds(60)
      #expect(try await store.complete(id, "alice", "h1", at: later).createdAt == later)
      #expect(try await store.walk(.everyone, createdBefore: .start) == [])
    },
    Self("pages respect the limit and cover the slice, for every audience") { store in
      var random = SeededGenerator(seed: 17)
      let names = ["a", "b", "c"]
      var devices: [RegistrationID: Set<String>] = [:]
      for number in 0..<60 {
        let tags = names.filter { _ in Bool.random(using: &random) }
        devices[try await store.register("u\(number)", "h\(number)", tags: tags).id] = Set(tags)
      }
      for round in 0..<40 {
        let expression = try TagExpression(AudienceWords.expression(over: names, depth: 3, using: &random))
        let audience: Audience =
          round % 8 == 0 ? .everyone : round % 8 == 1 ? .tags(["a", "b"]) : .expression(expression)
        let matching = devices.filter { _, tags in
          round % 8 == 0
            || (round % 8 == 1 ? !tags.isDisjoint(with: ["a", "b"]) : expression.holds(where: tags.contains))
        }
        let slices = Int.random(in: 1...4, using: &random)
        for number in 0..<slices {
          let slice = RegistrationSlice.page(number, of: slices)
          let found = try await store.walk(audience, of: slice, limit: Int.random(in: 1...70, using: &random))
          #expect(found.map(\.registration) == matching.keys.filter(slice.contains).sorted(), "\(audience)")
        }
      }
    },
    Self("a page after any id continues behind it") { store in
      var ids: [RegistrationID] = []
      for number in 0..<10 { ids.append(try await store.register("u", "h\(number)", tags: ["a"]).id) }
      ids.sort()
      for (number, id) in ids.enumerated() {
        let rest = RegistrationSlice.whole.after(id)
        for audience in [.everyone, .tag("a"), .tags(["a", "username:u"])] as [Audience] {
          let found = try await rest.asyncMap { try await store.walk(audience, of: $0) } ?? []
          #expect(found.map(\.registration) == Array(ids.dropFirst(number + 1)))
        }
        let one = RegistrationSlice(first: id, last: id)
        let page = try await store.page(
          AudienceQuery(hub: store.hub, audience: .everyone, platforms: .all), of: one, createdBefore: .start, limit: 1)
        #expect(page.targets.map(\.registration) == [id] && page.examined == 1 && page.last == nil)
      }
    },
    Self("an audience may have more than twenty tags") { store in
      let tags = (0..<20).map { "t\($0)" }
      let all = try await store.register("alice", "h1", tags: tags)
      let last = try await store.register("bob", "h2", tags: ["t19"])
      try await expectReached(.expression(TagExpression(tags.joined(separator: "&&"))), [all.id], in: store)
      try await expectReached(.expression(TagExpression(tags.joined(separator: "||"))), [all.id, last.id], in: store)
      try await expectReached(
        .tags((0..<Audience.maximumTags).map { "t\($0)" }.sorted()), [all.id, last.id], in: store)
      let many = (0..<TagExpression.maximumTags).map { $0 == 63 ? "!t1" : "t19" }.joined(separator: "&&")
      try await expectReached(.expression(TagExpression(many)), [last.id], in: store)
    },
  ]

  private static func ids(_ names: String, _ ids: [String: RegistrationID]) -> Set<RegistrationID> {
    Set(names.split(separator: " ").compactMap { ids[String($0)] })
  }

  /// Expects the same devices from resolving the audience and from its pages.
  private static func expectReached(
    _ audience: Audience, _ expected: Set<RegistrationID>, on platforms: PlatformSet = .all, hub: HubName = .default,
    in store: any WorkerRegistry, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let resolved = try await store.reached(by: audience, on: platforms, hub: hub)
    #expect(resolved == expected, "\(audience), resolved", sourceLocation: sourceLocation)
    for limit in [1, 2, 100] {
      let walked = try await store.walk(audience, on: platforms, hub: hub, limit: limit)
      #expect(
        walked.map(\.registration) == expected.sorted(), "\(audience), by \(limit)", sourceLocation: sourceLocation)
    }
  }
}

extension DeviceRegistry {
  /// All devices of an audience in a slice, page by page.
  fileprivate func walk(
    _ audience: Audience, of slice: RegistrationSlice = .whole, on platforms: PlatformSet = .all,
    hub: HubName = .default,
    createdBefore: UnixTime = UnixTime(milliseconds: .max), limit: Int = 7
  ) async throws -> [Target] {
    let query = AudienceQuery(hub: hub, audience: audience, platforms: platforms)
    var targets: [Target] = []
    var rest: RegistrationSlice? = slice
    while let part = rest {
      let page = try await page(query, of: part, createdBefore: createdBefore, limit: limit)
      #expect(page.examined <= limit && page.targets.count <= page.examined)
      #expect(page.targets.allSatisfy { part.contains($0.registration) })
      if let last = page.last {
        #expect(part.contains(last) && page.examined > 0)
        #expect(page.targets.allSatisfy { $0.registration <= last })
      }
      targets += page.targets
      rest = page.last.flatMap(part.after)
    }
    return targets
  }
}

extension Optional {
  /// `map` with an async closure.
  fileprivate func asyncMap<Result>(_ transform: (Wrapped) async throws -> Result) async rethrows -> Result? {
    if case .some(let value) = self { try await transform(value) } else { nil }
  }
}
