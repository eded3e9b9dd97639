import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// Audiences of sends that are rendered from templates.
  static let templateLookUps: [Self] = [
    Self("each kind of audience reaches either registrations without a template or those with one") { store in
      let native = try await store.register("ann", "h", tags: ["t", "u"])
      let first = try await store.register("ann", "h", tags: ["t", "u"], template: "a")
      let second = try await store.register("ann", "h", tags: ["t"], template: "b")
      let other = try await store.register("ben", "x", tags: ["v"], template: "a")
      let audiences: [(Audience, Set<RegistrationID>, Set<RegistrationID>)] = [
        (.user("ann"), [native.id], [first.id, second.id]), (.tag("t"), [native.id], [first.id, second.id]),
        (.tags(["u", "v"]), [native.id], [first.id, other.id]),
        (.expression(try TagExpression("t && u")), [native.id], [first.id]),
        (.expression(try TagExpression("!u")), [], [second.id, other.id]),
        (.everyone, [native.id], [first.id, second.id, other.id]),
        (.device(.fcm, handle: "h"), [native.id], [first.id, second.id]), (.device(.wns, handle: "h"), [], []),
        (.registration(native.id), [native.id], []), (.registration(first.id), [], [first.id]),
      ]
      let now = UnixTime.start + .seconds(1)
      for (audience, natives, templates) in audiences {
        #expect(try await store.reached(by: audience) == natives, "\(audience)")
        #expect(try await store.rendered(audience, .devices(name: nil)) == templates, "\(audience)")
        let named = try await store.rendered(audience, .devices(name: "a"))
        #expect(named == templates.subtracting([second.id]), "\(audience)")
        #expect(try await store.rendered(audience, .devices(name: "A")) == [], "\(audience)")
        for (template, expected) in [(nil, natives), (TemplateSource.devices(name: nil), templates)] {
          let query = AudienceQuery(
            hub: store.hub, audience: audience, platforms: [PlatformSet(.fcm)], template: template)
          var (found, slice): (Set<RegistrationID>, RegistrationSlice?) = ([], .whole)
          while let rest = slice {
            let page = try await store.page(query, of: rest, createdBefore: now, limit: 1)
            found.formUnion(page.targets.map(\.registration))
            slice = page.last.flatMap(rest.after)
          }
          #expect(found == expected, "\(audience)")
          let elsewhere = AudienceQuery(
            hub: store.hub, audience: audience, platforms: [PlatformSet(.apns)], template: template)
          #expect(try await store.resolve([elsewhere])[0] == [])
        }
      }
    },
    Self("queries with and without templates are answered together") { store in
      let native = try await store.register("ann", "h")
      let template = try await store.register("ann", "h", template: "a")
      func query(_ audience: Audience, _ template: TemplateSource?, before: UnixTime? = nil) -> AudienceQuery {
        AudienceQuery(
          hub: store.hub, audience: audience, platforms: .all, createdBefore: before, template: template)
      }
      let answers = try await store.resolve([
        query(.user("ann"), nil), query(.user("ann"), .devices(name: nil)), query(.user("ann"), .devices(name: "b")),
        query(.registration(template.id), .devices(name: nil), before: .start),
        query(.registration(template.id), .devices(name: nil), before: .start + .seconds(-1)),
        query(.registration(native.id), nil), query(.device(.fcm, handle: "h"), .devices(name: "a")),
      ])
      #expect(
        answers.map { $0.map(\.registration) } == [
          [native.id], [template.id], [], [template.id], [], [native.id], [template.id],
        ])
      #expect(answers.joined().allSatisfy { $0.handle == "h" && $0.platform == .fcm })
    },
    Self("devices with the same texts and values share a variant") { store in
      for (number, name) in ["Ann", "Ann", "Ben"].enumerated() {
        let template = DeviceTemplate.test("a", inserting: "name")
        _ = try await store.register(
          "u\(number)", "h\(number)", tags: ["t"],
          profile: DeviceProfile(template: template, attributes: ["name": name, "unused": "\(number)"]))
      }
      _ = try await store.register("u4", "h4", tags: ["t"], template: "a")
      let targets = try await store.targets(.tag("t"), .devices(name: nil))
      #expect(targets.count == 4 && Set(targets.map(\.variant)).count == 3)
      let texts = try targets.compactMap { try $0.variant?.content(for: .fcm, properties: ["text": "hello"]).fcm }
        .map { String(decoding: $0, as: UTF8.self) }
      #expect(
        texts.sorted() == [
          #"{"data":{"t":"Ann"}}"#, #"{"data":{"t":"Ann"}}"#, #"{"data":{"t":"Ben"}}"#, #"{"data":{"t":"hello"}}"#,
        ])
    },
    Self("a hub's template reaches registrations without one of their own, in the device's language") { store in
      func text(_ language: String) -> Content { Content(message: Message(body: "{'\(language) ' + $(name)}")) }
      let template = try await store.store(
        template: "greeting", defaultLocale: "en",
        variants: ["en": text("en"), "de": text("de"), "de-at": Content.of(fcm: Array(#"{"x":"$(name)"}"#.utf8))],
        hub: store.hub, at: .start)
      let source = TemplateSource.hub(name: "greeting", version: template.version)
      _ = try await store.register("own", "own", template: "greeting")
      var expected: [RegistrationID: String] = [:]
      for (number, locale) in [nil, "de", "de_CH", "fr", "EN-us"].enumerated() {
        let device = try await store.register(
          "u\(number)", "h\(number)", profile: DeviceProfile(locale: locale, attributes: ["name": "\(number)"]))
        expected[device.id] = "\(locale?.hasPrefix("de") == true ? "de" : "en") \(number)"
      }
      _ = try await store.register("apple", "ab", platform: .apns, profile: DeviceProfile(locale: "de-AT"))
      let targets = try await store.targets(.everyone, source)
      let texts = try targets.map {
        ($0.registration, try $0.variant?.content(for: $0.platform, properties: [:]).message?.body ?? "")
      }
      #expect(Dictionary(uniqueKeysWithValues: texts) == expected, "the Austrian texts have nothing for APNs")
      #expect(try await store.rendered(.user("u1"), source).count == 1)
      #expect(try await store.rendered(.device(.fcm, handle: "h1"), source).count == 1)
      #expect(try await store.targets(.everyone, .hub(name: "greeting", version: 9)) == [])
      #expect(try await store.targets(.user("u1"), .hub(name: "other", version: 1)) == [])
    },
    Self("the tags in use are listed by their prefix") { store in
      let other = HubName("other") ?? .default
      _ = try await store.register("ann", "h1", tags: ["timezone:Europe.Vienna", "timezone:UTC", "timezone", "a"])
      _ = try await store.register("ann", "h2", tags: ["timezone:UTC", "timezonf"])
      _ = try await store.register("ann", "h3", tags: ["timezone:Asia.Tokyo", "timezone:America.Lima"], hub: other)
      let prefix = "timezone:"
      #expect(
        try await store.tags(withPrefix: prefix, hub: store.hub, limit: 9) == [
          "timezone:Europe.Vienna", "timezone:UTC",
        ])
      #expect(try await store.tags(withPrefix: prefix, hub: other, limit: 1) == ["timezone:America.Lima"])
      #expect(try await store.tags(withPrefix: "x", hub: store.hub, limit: 9) == [])
      #expect(try await store.tags(withPrefix: "a\0", hub: store.hub, limit: 9) == [])
      #expect(try await store.tags(withPrefix: "", hub: store.hub, limit: 9).count == 6)
    },
  ]

  /// `TemplateStore`.
  static let hubTemplates: [Self] = [
    Self("a hub's template has versions that never change") { store in
      let variants = ["en": Content.of(message: Message(title: "$(t)", data: ["k": "v"]), wns: "<toast>$(x)</toast>")]
      func put(_ name: String, _ variants: [String: Content], hub: HubName = .default) async throws -> HubTemplate {
        try await store.store(template: name, defaultLocale: "en", variants: variants, hub: hub, at: .start)
      }
      let first = try await put("a", variants)
      #expect(first.version == 1 && first.createdAt == .start && first.variants == variants)
      #expect(try await put("a", variants) == first, "the same texts are no new version")
      let second = try await put("a", ["en": Content(message: Message(body: "x")), "de": Content.of(wns: "<a/>")])
      #expect(second.version == 2)
      #expect(try await store.template("a", version: nil, hub: store.hub) == second)
      let replaced = try #require(try await store.template("a", version: 1, hub: store.hub))
      #expect(replaced.variants == first.variants && replaced.replacedAt == .start && second.replacedAt == nil)
      #expect(try await store.template("a", version: 3, hub: store.hub) == nil)
      let other = HubName("other") ?? .default
      #expect(try await store.template("a", version: nil, hub: other) == nil)
      #expect(try await put("a", variants, hub: other).version == 1)
      for name in ["b", "c"] { _ = try await put(name, variants) }
      #expect(try await store.templates(after: nil, hub: store.hub, limit: 2).map(\.name) == ["a", "b"])
      try await store.remove(template: "b", hub: store.hub, at: .start)
      #expect(try await store.templates(after: "a", hub: store.hub, limit: 9).map(\.name) == ["c"])
      await expect(.notFound) { try await store.remove(template: "b", hub: store.hub, at: .start) }
      await expect(.notFound) { try await store.remove(template: "z", hub: store.hub, at: .start) }
      #expect(try await store.template("b", version: nil, hub: store.hub) == nil)
      #expect(try await store.template("b", version: 1, hub: store.hub)?.variants == variants, "for sends that use it")
      #expect(try await put("b", variants).version == 2)
      #expect(try await store.template("b", version: nil, hub: store.hub)?.version == 2)
    },
    Self("a version is purged when no send can use it any more, and the newest of a template never") { store in
      let ended = UnixTime.start + .seconds(86_400)
      for (name, text, now) in [("a", "1", UnixTime.start), ("b", "1", .start), ("a", "2", ended), ("a", "3", ended)] {
        let content = Content(message: Message(body: text))
        _ = try await store.store(
          template: name, defaultLocale: "en", variants: ["en": content], hub: store.hub, at: now)
      }
      try await store.remove(template: "b", hub: store.hub, at: ended)
      func left(_ age: Duration) async throws -> [Bool] {
        // A change starts the purge.
        _ = try await store.issue(hub: store.hub, handle: nil, at: ended + age)
        var left: [Bool] = []
        for (name, version) in [("a", 1), ("a", 2), ("a", 3), ("b", 1)] {
          left.append(try await store.template(name, version: version, hub: store.hub) != nil)
        }
        return left
      }
      #expect(try await left(HubTemplate.retention) == [true, true, true, true])
      #expect(try await left(HubTemplate.retention + .seconds(61)) == [false, false, true, false])
    },
    Self("a hub has at most 1,000 templates, of which removed ones do not count") { store in
      func put(_ name: String) async throws {
        _ = try await store.store(
          template: name, defaultLocale: "en", variants: ["en": Content(message: Message(body: "x"))], hub: store.hub,
          at: .start)
      }
      for number in 1...1000 { try await put("t\(number)") }
      await expect(.conflict) { try await put("t1001") }
      try await store.remove(template: "t1", hub: store.hub, at: .start)
      try await put("t1001")
      await expect(.conflict) { try await put("t1") }
    },
    Self("a hub's template that cannot be rendered is refused") { store in
      let text = Content(message: Message(body: "x"))
      let wrong: [(String, String, [String: Content])] = [
        ("a b", "en", ["en": text]), ("a", "de", ["en": text]), ("a", "EN", ["EN": text]),
        ("a", "en", ["en": Content(message: Message(body: "$(x"))]), ("a", "en", ["en": Content()]),
        ("a", "en", ["en": Content(message: Message(body: String(repeating: "x", count: 70_000)))]),
      ]
      for (name, locale, variants) in wrong {
        await expect(.forbidden) {
          try await store.store(
            template: name, defaultLocale: locale, variants: variants, hub: store.hub, at: .start)
        }
      }
      let stored = try await store.templates(after: nil, hub: store.hub, limit: 9)
      #expect(stored.isEmpty)
    },
    Self("concurrent changes of a template are versions one after the other") { store in
      let versions = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<8 {
          group.addTask {
            try await store.store(
              template: "a", defaultLocale: "en", variants: ["en": Content(message: Message(body: "\(number)"))],
              hub: store.hub, at: .start
            ).version
          }
        }
        return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
      }
      #expect(versions == Set(1...8))
    },
  ]

  /// Installations with templates.
  static let installationTemplates: [Self] = [
    Self("an installation is a registration without a template and one for each template") { store in
      let profile = DeviceProfile(locale: "de", attributes: ["name": "Ann"])
      let native = try await store.install(
        "i", "ann", "h", tags: ["t"], profile: profile, templates: ["two words", "b"], templateTags: ["own"])
      let all = try await store.registrations(ofInstallation: "i", hub: store.hub)
      #expect(all.map { $0.profile?.template?.name } == [nil, "b", "two words"] && all.first == native)
      #expect(try await store.registration(ofInstallation: "i", hub: store.hub) == native)
      #expect(native.tags == ["installation:i", "t", "username:ann"])
      #expect(all[1].tags == ["b", "installation:i", "own", "t", "username:ann"])
      #expect(all[2].tags == ["installation:i", "own", "t", "username:ann"], "no tag has a space")
      for one in all {
        #expect(one.profile?.locale == "de" && one.profile?.attributes == ["name": "Ann"])
        #expect(one.installation == "i" && one.handle == "h")
        #expect(try await store.registration(one.id, hub: store.hub) == one)
      }
      #expect(try await store.reached(by: .tag("installation:i")) == [native.id])
      #expect(try await store.rendered(.tag("installation:i"), .devices(name: nil)) == [all[1].id, all[2].id])
      #expect(try await store.rendered(.tag("b"), .devices(name: nil)) == [all[1].id])
    },
    Self("an installation's templates are replaced together") { store in
      _ = try await store.install("i", "ann", "h", templates: ["a", "b"])
      let before = try await store.registrations(ofInstallation: "i", hub: store.hub)
      _ = try await store.install("i", "ann", "h2", templates: ["b", "c"], at: .start + .seconds(1))
      let after = try await store.registrations(ofInstallation: "i", hub: store.hub)
      #expect(after.map { $0.profile?.template?.name } == [nil, "b", "c"] && after.allSatisfy { $0.handle == "h2" })
      #expect(after.prefix(2).map(\.id) == [before[0].id, before[2].id], "ids stay")
      #expect(try await store.registration(before[1].id, hub: store.hub) == nil)
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == Set(after.dropFirst().map(\.id)))
      _ = try await store.install("i", "ann", "h2", at: .start + .seconds(2))
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub).count == 1)
    },
    Self("a refused installation changes nothing") { store in
      _ = try await store.install("i", "ann", "h", templates: ["a"])
      let before = try await store.registrations(ofInstallation: "i", hub: store.hub)
      await expect(.forbidden) { try await store.install("i", "ann", "h", templates: ["b", "b"]) }
      await expect(.forbidden) { try await store.install("i", "ann", "h", templates: [""]) }
      await expect(.gone) { try await store.install("i", "eve", "x", templates: ["b"]) }
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == before)
    },
    Self("an installation that passes to another user has only the new templates") { store in
      _ = try await store.install("i", "ann", "h", templates: ["a", "b"])
      _ = try await store.register("ann", "h", template: "c")
      _ = try await store.install("i", "ben", "h", templates: ["b"], at: .start + .seconds(1))
      #expect(try await store.rendered(.user("ann"), .devices(name: nil)) == [])
      #expect(try await store.rendered(.everyone, .devices(name: nil)).count == 1)
    },
    Self("an installation's templates go when another registration takes its place") { store in
      _ = try await store.install("i", "ann", "h", templates: ["a", "b"])
      let again = try await store.install("j", "ann", "h", templates: ["a"], at: .start + .seconds(1))
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [])
      let rows = try await store.registrations(ofInstallation: "j", hub: store.hub)
      #expect(rows.count == 2)
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [rows[1].id])
      _ = try await store.complete(again.id, "ann", "h", at: .start + .seconds(2))
      #expect(try await store.registrations(ofInstallation: "j", hub: store.hub) == [])
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [])
      _ = try await store.install("k", "ann", "x", templates: ["a"])
      let other = try await store.register("ann", "x", at: .start + .seconds(1))
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [])
      #expect(try await store.reached(by: .user("ann")) == [again.id, other.id])
    },
    Self("a device has at most 100 templates, however it registers them") { store in
      for number in 0..<60 { _ = try await store.register("ann", "h", template: "r\(number)") }
      let names = (0..<41).map { "i\($0)" }
      await expect(.conflict) { try await store.install("i", "ann", "h", templates: names) }
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [])
      _ = try await store.install("i", "ann", "h", templates: names.dropLast())
      await expect(.conflict) { try await store.register("ann", "h", template: "r60") }
      #expect(try await store.rendered(.user("ann"), .devices(name: nil)).count == 100)
      // Those of a former user, or of a former installation, do not count.
      for (number, user) in ["ann", "ben", "ben"].enumerated() {
        let now = UnixTime.start + .seconds(number + 1)
        _ = try await store.install("i\(number)", user, "h", templates: (0..<40).map { "n\($0)" }, at: now)
      }
      #expect(try await store.rendered(.everyone, .devices(name: nil)).count == 40)
    },
    Self("removing an installation removes its templates") { store in
      let native = try await store.install("i", "ann", "h", templates: ["a", "b"])
      let other = try await store.register("ann", "h", template: "c")
      let rows = try await store.registrations(ofInstallation: "i", hub: store.hub)
      try await store.remove(rows[1].id, hub: store.hub, user: "ann", at: .start)
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [rows[0], rows[2]])
      try await store.remove(native.id, hub: store.hub, user: "ann", at: .start)
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [])
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [other.id])
    },
    Self("a revision replaces the templates, and one of an older state is refused") { store in
      let first = try await store.install("i", "ann", "h", templates: ["a"])
      func revise(_ former: Registration, _ templates: [String]) async throws -> Registration {
        try await store.revise(
          former,
          by: DeviceRequest(
            installation: "i", hub: store.hub, user: "ann", platform: .fcm, handle: "h",
            templates: templates.map { .init(.test($0)) }), at: .start)
      }
      // All at the same moment: a change of the templates alone shows in the registration.
      let second = try await revise(first, ["a", "b"])
      await expect(.conflict) { try await revise(first, ["c"]) }
      let third = try await store.install("i", "ann", "h", templates: ["d"])
      await expect(.conflict) { try await revise(second, ["c"]) }
      let last = try await revise(third, [])
      #expect(last.registeredAt == first.registeredAt)
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [last])
    },
  ]
}
