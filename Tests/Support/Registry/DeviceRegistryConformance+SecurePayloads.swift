import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// Payloads that wait for their recipients.
  static let securePayloads: [Self] = [
    Self("a payload is its recipient's, and remembers having been read") { store in
      let id = SecurePayloadID.random()
      let payload = "quotes \" <tags> \\ new\nline, NUL \0 and 🦄" + String(repeating: "x", count: 60_000)
      try await store.store(payload, id: id, hub: store.hub, recipient: "bob", expiresAt: .start + .seconds(60))
      #expect(try await store.read(id, hub: store.hub, recipient: "alice", at: .start) == nil)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob\0", at: .start) == nil)
      #expect(try await store.read(.random(), hub: store.hub, recipient: "bob", at: .start) == nil)
      let other = try #require(HubName("other"))
      #expect(try await store.read(id, hub: other, recipient: "bob", at: .start) == nil)
      let first = SecurePayload(id: id, payload: payload, isRead: false)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", isDelivered: false, at: .start) == first)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start) == first)
      let second = SecurePayload(id: id, payload: payload, isRead: true)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start) == second)
    },
    Self("a payload expires") { store in
      let id = SecurePayloadID.random()
      try await store.store("p", id: id, hub: store.hub, recipient: "bob", expiresAt: .start + .seconds(60))
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start + .milliseconds(59_999)) != nil)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start + .seconds(60)) == nil)
    },
    Self("a payload that is stored again is kept for as long as was said last") { store in
      let id = SecurePayloadID.random()
      for seconds in [60, 90, 30] {
        try await store.store("p", id: id, hub: store.hub, recipient: "bob", expiresAt: .start + .seconds(seconds))
      }
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start + .seconds(89)) != nil)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start + .seconds(90)) == nil)
    },
    Self("a payload is taken back, and an id is used once") { store in
      let id = SecurePayloadID.random()
      try await store.store("p", id: id, hub: store.hub, recipient: "bob", expiresAt: .start + .seconds(60))
      for (payload, recipient) in [("q", "bob"), ("p", "eve")] {
        await expect(.conflict) {
          try await store.store(payload, id: id, hub: store.hub, recipient: recipient, expiresAt: .start + .seconds(60))
        }
      }
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start)?.payload == "p")
      try await store.discard(id, hub: store.hub)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start) == nil)
      try await store.discard(id, hub: store.hub)
    },
  ]
}
