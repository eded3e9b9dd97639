import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// API keys.
  static let apiKeys: [Self] = [
    Self("an API key is found in its hub only, unchanged") { store in
      let other = try #require(HubName("other"))
      let plain = StoredAPIKey(
        hub: store.hub, id: "0aZ", user: "backend", scopes: ["send:user", "send:tag"],
        digest: [UInt8](repeating: 7, count: 32), createdAt: .start)
      let rich = StoredAPIKey(
        hub: store.hub, id: "1bY", user: "Zoë ", scopes: [], comment: "for the \"shop\", ü",
        digest: [UInt8](0..<32), createdAt: .start, expiresAt: .start + .seconds(60), lastUsedDay: .start)
      for key in [plain, rich] {
        try await store.addAPIKey(key)
        #expect(try await store.apiKey(key.id, hub: store.hub) == key)
        #expect(try await store.apiKey(key.id, hub: other) == nil)
      }
      // Ids are compared by bytes.
      for id in ["0az", "0aZ\0", "", "0a"] { #expect(try await store.apiKey(id, hub: store.hub) == nil) }
    },
    Self("API keys are listed by age, and any number is valid at a time") { store in
      let other = try #require(HubName("other"))
      #expect(try await store.apiKeys(hub: store.hub).isEmpty)
      for (id, hub, seconds) in [("c", store.hub, 2), ("b", store.hub, 1), ("a", store.hub, 2), ("d", other, 0)] {
        try await store.addAPIKey(apiKey(id, hub: hub, at: .start + .seconds(seconds)))
      }
      #expect(try await store.apiKeys(hub: store.hub).map(\.id) == ["b", "a", "c"])
      #expect(try await store.apiKeys(hub: other).map(\.id) == ["d"])
    },
    Self("an id of an API key is used once in a hub") { store in
      let other = try #require(HubName("other"))
      try await store.addAPIKey(apiKey("a", hub: store.hub))
      await expect(.conflict) { try await store.addAPIKey(apiKey("a", hub: store.hub, at: .start + .seconds(1))) }
      try await store.addAPIKey(apiKey("a", hub: other))
      #expect(try await store.apiKey("a", hub: store.hub)?.createdAt == .start)
    },
    Self("a removed API key is gone") { store in
      let other = try #require(HubName("other"))
      try await store.addAPIKey(apiKey("a", hub: store.hub))
      try await store.addAPIKey(apiKey("b", hub: store.hub))
      #expect(try await !store.removeAPIKey("a", hub: other))
      #expect(try await !store.removeAPIKey("a\0", hub: store.hub))
      #expect(try await store.removeAPIKey("a", hub: store.hub))
      #expect(try await !store.removeAPIKey("a", hub: store.hub))
      #expect(try await store.apiKey("a", hub: store.hub) == nil)
      #expect(try await store.apiKeys(hub: store.hub).map(\.id) == ["b"])
    },
    Self("the last day of use of an API key only advances") { store in
      try await store.addAPIKey(apiKey("a", hub: store.hub))
      let day = UnixTime.start.startOfDay
      for (used, expected) in [
        (day, day), (day + .seconds(86_400), day + .seconds(86_400)), (day, day + .seconds(86_400)),
      ] {
        try await store.markAPIKeyUsed("a", hub: store.hub, day: used)
        #expect(try await store.apiKey("a", hub: store.hub)?.lastUsedDay == expected)
      }
      try await store.markAPIKeyUsed("unknown", hub: store.hub, day: day)
    },
    Self("texts that would not be read again unchanged are refused") { store in
      for (comment, scopes) in [
        ("a\nb", []), ("", ["two words"]), ("", [""]), (String(repeating: "x", count: 201), []),
      ] {
        let key = StoredAPIKey(
          hub: store.hub, id: "a", user: "bob", scopes: scopes, comment: comment,
          digest: [UInt8](repeating: 0, count: 32), createdAt: .start)
        await expect(.forbidden) { try await store.addAPIKey(key) }
      }
    },
  ]
}

/// A key of bob.
private func apiKey(_ id: String, hub: HubName, at time: UnixTime = .start) -> StoredAPIKey {
  StoredAPIKey(
    hub: hub, id: id, user: "bob", scopes: ["send:user"], digest: [UInt8](repeating: 1, count: 32), createdAt: time)
}
