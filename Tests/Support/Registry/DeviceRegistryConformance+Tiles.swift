import FanfareCore
import Registry
import Testing

extension DeviceRegistryConformance {
  /// Secondary tiles of installations.
  static let tiles: [Self] = [
    Self("a tile is a registration of its own with its own tags, and so are its templates") { store in
      let native = try await store.install("main", tags: ["t"], templates: ["a"], tiles: [.test("news", "n", ["b"])])
      let all = try await store.registrations(ofInstallation: "i", hub: store.hub)
      #expect(all.map(\.part) == ["", "/a", "news", "news/b"] && all.first == native)
      #expect(try await store.registration(ofInstallation: "i", hub: store.hub) == native)
      #expect(all.map(\.handle) == ["main", "main", "n", "n"].map(channel))
      #expect(all[2].tags == ["installation:i", "own", "username:ann"])
      #expect(all[3].tags == ["b", "installation:i", "own", "username:ann"])
      for one in all {
        #expect(one.installation == "i" && one.user == "ann")
        #expect(try await store.registration(one.id, hub: store.hub) == one)
      }
      // At most one push for each row.
      #expect(try await store.reached(by: .tag("installation:i")) == [native.id, all[2].id])
      #expect(try await store.reached(by: .tag("own")) == [all[2].id])
      #expect(try await store.reached(by: .tag("t")) == [native.id])
      #expect(try await store.rendered(.everyone, .devices(name: "b")) == [all[3].id])
      #expect(
        DeviceRequest.Tile.all(in: all) == [
          .init("news", handle: channel("n"), tags: ["own"], templates: [.init(.tile("b"))])
        ])
    },
    Self("tiles are replaced together, and a change of them shows in the installation") { store in
      let first = try await store.install("main", tiles: [.test("x", "x"), .test("y", "y", ["b"])])
      let before = try await store.registrations(ofInstallation: "i", hub: store.hub)
      let second = try await store.install("main", tiles: [.test("y", "y2", ["b"]), .test("z", "z")])
      #expect(first != second, "all at the same moment")
      let after = try await store.registrations(ofInstallation: "i", hub: store.hub)
      #expect(after.map(\.part) == ["", "y", "y/b", "z"])
      #expect(after.prefix(3).map(\.id) == [before[0], before[2], before[3]].map(\.id), "ids stay")
      #expect(after[1].handle == channel("y2") && after[2].handle == channel("y2"))
      #expect(try await store.registration(before[1].id, hub: store.hub) == nil)
      #expect(try await store.reached(by: .everyone) == [after[0].id, after[1].id, after[3].id])
      let last = try await store.revise(
        second,
        by: DeviceRequest(
          installation: "i", hub: store.hub, user: "ann", platform: .wns, handle: channel("main")), at: .start)
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [last])
    },
    Self("channels pass between an installation and its tiles") { store in
      _ = try await store.install("a", tiles: [.test("x", "b"), .test("y", "c", ["t"])])
      for (own, x, y) in [("b", "a", "c"), ("b", "c", "a"), ("c", "a", "b")] {
        _ = try await store.install(own, tiles: [.test("x", x), .test("y", y, ["t"])])
        let all = try await store.registrations(ofInstallation: "i", hub: store.hub)
        #expect(all.map(\.part) == ["", "x", "y", "y/t"])
        #expect(all.map(\.handle) == [own, x, y, y].map(channel))
        #expect(try await store.reached(by: .everyone) == Set(all.prefix(3).map(\.id)))
      }
    },
    Self("a channel that becomes a tile's leaves its former user") { store in
      let native = try await store.register("ben", channel("n"), platform: .wns)
      let template = try await store.complete(
        try await store.issue(hub: store.hub, handle: nil, at: .start), "ben", channel("n"), platform: .wns,
        template: .tile("a"))
      _ = try await store.install("main", tiles: [.test("news", "n")])
      for former in [native, template] { #expect(try await store.registration(former.id, hub: store.hub) == nil) }
      #expect(try await store.reached(by: .user("ben")) == [])
    },
    Self("tiles go when another user registers a template on the device") { store in
      _ = try await store.install("main", tiles: [.test("x", "x", ["a"])])
      _ = try await store.complete(
        try await store.issue(hub: store.hub, handle: channel("main"), at: .start), "ben", channel("main"),
        platform: .wns, template: .tile("b"))
      let left = try await store.list(.everyone, hub: store.hub, of: .whole, limit: 9).registrations
      #expect(left.map(\.user) == ["ben"])
    },
    Self("removing an installation removes its tiles") { store in
      let native = try await store.install("main", tiles: [.test("x", "x", ["a"]), .test("y", "y")])
      try await store.remove(native.id, hub: store.hub, user: "ann", at: .start)
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == [])
      #expect(try await store.list(.everyone, hub: store.hub, of: .whole, limit: 9).registrations == [])
    },
    Self("tiles need names and channels of their own, and Windows") { store in
      let native = try await store.install("main", tiles: [.test("x", "x")])
      let before = try await store.registrations(ofInstallation: "i", hub: store.hub)
      for tiles in [
        [DeviceRequest.Tile.test("x", "main")], [.test("x", "x"), .test("x", "y")],
        [.test("x", "x"), .test("y", "x")], [.test("", "x")], [.test("x", "x", ["a", "a"])],
      ] {
        await expect(.forbidden) { try await store.install("main", tiles: tiles) }
      }
      await expect(.conflict) {
        try await store.install("main", tiles: (0...100).map { .test("\($0)", "\($0)") })
      }
      await expect(.forbidden) {
        try await store.install(
          DeviceRequest(
            installation: "i", hub: store.hub, user: "ann", platform: .fcm, handle: "h", tiles: [.test("x", "x")]),
          at: .start)
      }
      #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == before && before[0] == native)
    },
    Self("tiles are exported and imported as they are") { store in
      _ = try await store.install("main", templates: ["t"], tiles: [.test("x", "x", ["a"])])
      let exported = try await store.list(.everyone, hub: store.hub, of: .whole, limit: 99).registrations
      let lines = try exported.enumerated().map {
        try RegistrationLine($1.json[...], number: $0 + 1, hub: HubName("copies") ?? .default, at: .start)
      }
      let hub = try #require(HubName("copies"))
      for round in 0..<2 {
        let batch = ImportBatch(hub: hub, file: nil, bytes: 0..<1, lines: lines, counts: ImportCounts())
        let counts = try await store.take(batch, at: .start).counts
        #expect((counts.imported, counts.unchanged) == (round == 0 ? 4 : 0, round == 0 ? 0 : 4))
      }
      #expect(
        try await store.registrations(ofInstallation: "i", hub: hub).map(\.json)
          == store.registrations(ofInstallation: "i", hub: store.hub).map(\.json))
    },
  ]
}

private func channel(_ name: String) -> String { "https://x.notify.windows.com/?token=\(name)" }

extension Registration {
  /// The names of its tile and template: `tile/template`.
  fileprivate var part: String {
    (profile?.tile ?? "") + (profile?.template.map { "/\($0.name)" } ?? "")
  }
}

extension DeviceTemplate {
  fileprivate static func tile(_ name: String) -> DeviceTemplate { DeviceTemplate(name: name, body: "<a>$(b)</a>") }
}

extension DeviceRequest.Tile {
  fileprivate static func test(_ name: String, _ handle: String, _ templates: [String] = []) -> Self {
    Self(name, handle: channel(handle), tags: ["own"], templates: templates.map { .init(.tile($0)) })
  }
}

extension DeviceRegistry {
  /// Registers the installation `i` of ann with tiles.
  fileprivate func install(
    _ handle: String, tags: [String] = [], templates: [String] = [], tiles: [DeviceRequest.Tile]
  ) async throws -> Registration {
    try await install(
      DeviceRequest(
        installation: "i", hub: hub, user: "ann", platform: .wns, handle: channel(handle), tags: tags,
        templates: templates.map { .init(.tile($0)) }, tiles: tiles), at: .start)
  }
}
