import FanfareCore
import Registry
import Testing

extension DeviceRegistryConformance {
  /// Profiles, and the rows of devices' own templates.
  static let profiles: [Self] = [
    Self("a profile is stored, listed and replaced with its registration") { store in
      let profile = DeviceProfile(locale: "de-AT", timeZone: "Europe/Vienna", attributes: ["name": "Ann \u{1F600}"])
      let first = try await store.register("ann", "h", profile: profile)
      #expect(first.profile == profile)
      #expect(try await store.registration(first.id, hub: store.hub) == first)
      #expect(try await store.list(.user("ann"), hub: store.hub, of: .whole, limit: 9).registrations == [first])
      #expect(first.tags == ["time-zone:Europe.Vienna", "username:ann"])
      let next = try await store.complete(first.id, "ann", "h", tags: first.tags + ["time-zone:UTC"])
      #expect(next.profile == nil && next.tags == ["username:ann"], "the tag follows the profile")
      #expect(try await store.registration(first.id, hub: store.hub) == next)
      #expect(try await store.register("ann", "h2", profile: DeviceProfile()).profile == nil, "nothing is stored")
    },
    Self("a device has one registration without a template, and one for each template") { store in
      let native = try await store.register("ann", "AB", platform: .apns, tags: ["news"])
      let first = try await store.register("ann", "ab", platform: .apns, tags: ["news"], template: "a")
      let second = try await store.register("ann", "AB", platform: .apns, tags: ["sport"], template: "b")
      let nameless = try await store.register("ann", "ab", platform: .apns, template: "")
      #expect(first.handle == "ab" && first.profile?.template?.name == "a")
      let all = [native, first, second, nameless]
      for one in all { #expect(try await store.registration(one.id, hub: store.hub) == one) }
      let listed = try await store.list(.user("ann"), hub: store.hub, of: .whole, limit: 9).registrations
      #expect(Set(listed) == Set(all) && listed.count == 4)
      let held = try await store.list(.device(.apns, handle: "ab"), hub: store.hub, of: .whole, limit: 3)
      #expect(held.registrations.count == 3 && held.last != nil)
      // The same name again replaces the registration.
      let again = try await store.register("ann", "ab", platform: .apns, template: "a", at: .start + .seconds(1))
      #expect(try await store.registration(first.id, hub: store.hub) == nil)
      #expect(
        try await store.rendered(.everyone, .devices(name: nil)) == [again.id, second.id, nameless.id])
      #expect(try await store.issue(hub: store.hub, handle: "AB", at: .start + .seconds(2)) == native.id)
    },
    Self("a device has several templates without a name, one for each body") { store in
      func put(_ property: String, _ seconds: Int, id: RegistrationID? = nil) async throws -> Registration {
        let profile = DeviceProfile(template: .test("", inserting: property))
        let now = UnixTime.start + .seconds(seconds)
        guard let id else { return try await store.register("ann", "h", profile: profile, at: now) }
        return try await store.complete(id, "ann", "h", profile: profile, at: now)
      }
      let (first, second) = (try await put("a", 0), try await put("b", 0))
      let named = try await store.register("ann", "h", template: "c")
      for one in [first, second] { #expect(try await store.registration(one.id, hub: store.hub) == one) }
      #expect(try await store.rendered(.user("ann"), .devices(name: nil)) == [first.id, second.id, named.id])
      #expect(try await store.rendered(.user("ann"), .devices(name: "c")) == [named.id])
      // An app that was installed again registers the same template, and changes the other one.
      let again = try await put("a", 1)
      let changed = try await put("d", 1, id: second.id)
      #expect(try await store.registration(first.id, hub: store.hub) == nil)
      #expect(try await store.rendered(.user("ann"), .devices(name: nil)) == [again.id, changed.id, named.id])
      let third = try await put("b", 2)
      #expect(try await store.rendered(.everyone, .devices(name: nil)).contains(third.id), "the body is free again")
      _ = try await store.register("ben", "h", at: .start + .seconds(3))
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [])
    },
    Self("a template that cannot be rendered is refused, and nothing changes") { store in
      let before = try await store.register("ann", "ab", platform: .apns)
      let long = #"{"a":"\#(String(repeating: "x", count: 4096))"}"#
      for body in ["", "[]", #"{"aps":{"alert":"$(a"}}"#, #"{"a":"{$(b) + }"}"#, long] {
        await expect(.forbidden) {
          try await store.complete(before.id, "ann", "ab", platform: .apns, template: DeviceTemplate(body: body))
        }
      }
      let tooLong = DeviceProfile(attributes: ["a": String(repeating: "x", count: DeviceProfile.maximumLength)])
      await expect(.forbidden) { try await store.complete(before.id, "ann", "ab", platform: .apns, profile: tooLong) }
      let control = DeviceTemplate(name: "a\u{1F}b", body: "{}")
      await expect(.forbidden) { try await store.complete(before.id, "ann", "ab", platform: .apns, template: control) }
      #expect(try await store.registration(before.id, hub: store.hub) == before)
    },
    Self("a registration changes between with and without a template") { store in
      let id = try await store.register("ann", "h").id
      _ = try await store.complete(id, "ann", "h", template: .test("a"))
      #expect(try await store.reached(by: .device(.fcm, handle: "h")) == [])
      #expect(try await store.reached(by: .user("ann")) == [])
      let native = try await store.register("ann", "h")
      #expect(try await store.rendered(.user("ann"), .devices(name: "a")) == [id])
      _ = try await store.complete(id, "ann", "h")
      #expect(try await store.registration(native.id, hub: store.hub) == nil, "it held the handle")
      #expect(try await store.reached(by: .user("ann")) == [id])
      #expect(try await store.rendered(.user("ann"), .devices(name: nil)) == [])
    },
    Self("a device that passes to another user takes no templates along") { store in
      let native = try await store.register("ann", "h")
      let templates = [
        try await store.register("ann", "h", template: "a"), try await store.register("ann", "h", template: "b"),
      ]
      let elsewhere = try await store.register("ann", "h2", template: "a")
      _ = try await store.complete(native.id, "ben", "h", at: .start + .seconds(1))
      for template in templates { #expect(try await store.registration(template.id, hub: store.hub) == nil) }
      #expect(try await store.rendered(.user("ann"), .devices(name: nil)) == [elsewhere.id])
      // By another id, by an installation, and by a template.
      let ben = try await store.register("ben", "h", template: "a", at: .start + .seconds(2))
      _ = try await store.register("cat", "h", at: .start + .seconds(3))
      #expect(try await store.registration(ben.id, hub: store.hub) == nil)
      _ = try await store.register("cat", "h", template: "a", at: .start + .seconds(4))
      _ = try await store.install("i", "dan", "h", at: .start + .seconds(5))
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [elsewhere.id])
      let eve = try await store.register("eve", "h", template: "z", at: .start + .seconds(6))
      #expect(try await store.reached(by: .user("dan")) == [], "the device belongs to the last user")
      #expect(try await store.rendered(.user("eve"), .devices(name: "z")) == [eve.id])
    },
    Self("a handle that is dead takes its templates along") { store in
      let native = try await store.register("ann", "h")
      let template = try await store.register("ann", "h", template: "a", at: .start + .seconds(2))
      let other = try await store.register("ann", "h2", template: "a")
      func drop(_ registration: Registration, since: UnixTime?) async throws -> Set<RegistrationID> {
        let verdict = DeadDevice(
          hub: store.hub, registration: registration.id, handle: "h", since: since, reason: "gone")
        return Set(try await store.drop([verdict], at: .start + .seconds(3)))
      }
      #expect(try await drop(native, since: .start + .seconds(1)) == [], "the app has reported the handle since")
      #expect(try await drop(template, since: .start + .seconds(3)) == [native.id, template.id])
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [other.id])
      #expect(try await store.reached(by: .everyone) == [])
    },
    Self("profiles and templates are exported and imported as they are") { store in
      _ = try await store.register(
        "ann", "h", tags: ["t"], profile: DeviceProfile(locale: "fr", attributes: ["a": "b\0\n"]))
      _ = try await store.register("ann", "h", tags: ["t"], template: "Vorlage \u{E4}")
      _ = try await store.install("i", "ben", "x", templates: ["one", "two"])
      // As many tags as an app may give, for the device and for a template.
      _ = try await store.install(
        "j", "ben", "y", tags: (0..<60).map { "d\($0)" }, profile: DeviceProfile(timeZone: "Europe/Vienna"),
        templates: ["one"], templateTags: (0..<60).map { "t\($0)" })
      // As clients of Azure do: tags of an installation that the registrations are not.
      for template in [nil, DeviceTemplate(body: #"{"data":{"k":"v"}}"#)] {
        _ = try await store.complete(
          DeviceRequest(
            id: .random(), hub: store.hub, user: "ben", platform: .fcm, handle: "z", tags: ["installation:k"],
            profile: template.map { DeviceProfile(template: $0) }, isTrusted: true), at: .start)
      }
      let exported = try await store.list(.everyone, hub: store.hub, of: .whole, limit: 99).registrations
      #expect(exported.count == 9)
      let lines = try exported.enumerated().map {
        try RegistrationLine($1.json[...], number: $0 + 1, hub: .copies, at: .start)
      }
      for round in 0..<2 {
        let batch = ImportBatch(hub: .copies, file: nil, bytes: 0..<1, lines: lines, counts: ImportCounts())
        let counts = try await store.take(batch, at: .start).counts
        #expect((counts.imported, counts.unchanged) == (round == 0 ? 9 : 0, round == 0 ? 0 : 9))
        let copies = try await store.list(.everyone, hub: .copies, of: .whole, limit: 99).registrations
        #expect(copies.map(\.json) == exported.map(\.json))
      }
      #expect(try await store.registrations(ofInstallation: "i", hub: .copies).count == 3)
    },
    Self("an import leaves a device to its last user") { store in
      let ann = try await store.register("ann", "h", template: "a")
      let now = UnixTime.start + .seconds(10)
      let text = #"{"user":"ben","platform":"fcm","handle":"h"}"#
      let line = try RegistrationLine(Array(text.utf8)[...], number: 1, hub: store.hub, at: now)
      let batch = ImportBatch(hub: store.hub, file: nil, bytes: 0..<1, lines: [line], counts: ImportCounts())
      _ = try await store.take(batch, at: now)
      #expect(try await store.registration(ann.id, hub: store.hub) == nil)
    },
  ]

  /// Registrations of trusted callers.
  static let trusted: [Self] = [
    Self("a trusted caller creates and replaces registrations of any user") { store in
      let id = RegistrationID.random()
      func put(_ user: String, _ handle: String, template: DeviceTemplate? = nil) async throws -> Registration {
        try await store.complete(
          DeviceRequest(
            id: id, hub: store.hub, user: user, platform: .fcm, handle: handle, tags: ["installation:x"],
            profile: template.map { DeviceProfile(template: $0) }, isTrusted: true), at: .start)
      }
      await expect(.gone) { try await store.complete(id, "ann", "h") }
      #expect(try await put("ann", "h").id == id)
      #expect(try await put("ben", "other").user == "ben")
      #expect(try await store.reached(by: .user("ann")) == [])
      #expect(try await store.reached(by: .tag("installation:x")) == [id])
      await expect(.gone) { try await store.complete(id, "ann", "h") }
      try await store.remove(id, hub: store.hub, user: "ben", at: .start)
      _ = try await put("cat", "h")
      #expect(try await store.tombstones(hub: store.hub, since: .start, cause: nil, after: nil, limit: 9).isEmpty)
      _ = try await store.install("i", "ann", "a")
      let taken = try await store.install(
        DeviceRequest(
          installation: "i", hub: store.hub, user: "eve", platform: .fcm, handle: "b", isTrusted: true), at: .start)
      #expect(try await store.reached(by: .user("eve")) == [taken.id])
    },
    Self("registrations without a user share a device with a user's") { store in
      func put(_ handle: String, template: DeviceTemplate?) async throws -> Registration {
        let id = RegistrationID.random()
        return try await store.complete(
          DeviceRequest(
            id: id, hub: store.hub, user: UserName.ofDevice(id), platform: .fcm, handle: handle, tags: [],
            profile: template.map { DeviceProfile(template: $0) }, isTrusted: true), at: .start)
      }
      let ann = try await store.register("ann", "h")
      let template = try await put("h", template: .test("a"))
      let other = try await put("h", template: .test("b"))
      #expect(try await store.reached(by: .everyone) == [ann.id])
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [template.id, other.id])
      // Nobody is logged in any more: ann's templates go with her registration.
      let anns = try await store.register("ann", "h", template: "c")
      let native = try await put("h", template: nil)
      #expect(try await store.registration(anns.id, hub: store.hub) == nil)
      #expect(try await store.reached(by: .everyone) == [native.id])
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [template.id, other.id])
    },
    Self("an installation without a user shares its device with a user's template") { store in
      let native = try await store.install(
        DeviceRequest(
          installation: "i", hub: store.hub, user: UserName.ofDevice(.random()), platform: .fcm, handle: "h",
          templates: [.init(.test("a"))], isTrusted: true), at: .start)
      let rows = try await store.registrations(ofInstallation: "i", hub: store.hub)
      let anns = try await store.register("ann", "h", template: "c")
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == rows && rows.first == native)
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [rows[1].id, anns.id])
    },
  ]
}

extension HubName {
  fileprivate static let copies = HubName("copies") ?? .default
}

extension DeviceTemplate {
  /// A template that any platform accepts.
  static func test(_ name: String, inserting property: String = "text") -> DeviceTemplate {
    DeviceTemplate(name: name, body: #"{"data":{"t":"$(\#(property))"}}"#)
  }
}

extension DeviceRegistry {
  /// Issues an id and completes it with a profile.
  func register(
    _ user: String, _ handle: String, platform: Platform = .fcm, tags: [String] = [], profile: DeviceProfile,
    at now: UnixTime = .start
  ) async throws -> Registration {
    let id = try await issue(hub: hub, handle: nil, at: now)
    return try await complete(id, user, handle, platform: platform, tags: tags, profile: profile, at: now)
  }

  /// Issues an id and completes it with a template.
  func register(
    _ user: String, _ handle: String, platform: Platform = .fcm, tags: [String] = [], template name: String,
    at now: UnixTime = .start
  ) async throws -> Registration {
    try await register(
      user, handle, platform: platform, tags: tags, profile: DeviceProfile(template: .test(name)), at: now)
  }

  /// Completes an id with a profile.
  func complete(
    _ id: RegistrationID, _ user: String, _ handle: String, platform: Platform = .fcm, tags: [String] = [],
    profile: DeviceProfile, at now: UnixTime = .start
  ) async throws -> Registration {
    try await complete(
      DeviceRequest(
        id: id, hub: hub, user: user, platform: platform, handle: handle, tags: tags, profile: profile), at: now)
  }

  /// Completes an id with a template.
  func complete(
    _ id: RegistrationID, _ user: String, _ handle: String, platform: Platform = .fcm, template: DeviceTemplate
  ) async throws -> Registration {
    try await complete(id, user, handle, platform: platform, profile: DeviceProfile(template: template))
  }

  /// Registers an installation with templates.
  func install(
    _ installation: String, _ user: String, _ handle: String, tags: [String] = [], profile: DeviceProfile? = nil,
    templates: [String], templateTags: [String] = [], at now: UnixTime = .start
  ) async throws -> Registration {
    try await install(
      DeviceRequest(
        installation: installation, hub: hub, user: user, platform: .fcm, handle: handle, tags: tags,
        profile: profile, templates: templates.map { .init(.test($0), tags: templateTags) }), at: now)
  }

  /// The ids of the registrations that an audience reaches with templates.
  func rendered(_ audience: Audience, _ template: TemplateSource) async throws -> Set<RegistrationID> {
    let targets = try await targets(audience, template)
    #expect(targets.allSatisfy { $0.variant != nil })
    return Set(targets.map(\.registration))
  }

  /// The devices that an audience reaches with templates.
  func targets(_ audience: Audience, _ template: TemplateSource, on platforms: PlatformSet = .all) async throws
    -> [Target]
  {
    try await resolve([AudienceQuery(hub: hub, audience: audience, platforms: platforms, template: template)])[0]
  }
}
