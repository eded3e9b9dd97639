import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// Secure payloads.
  static let securePayloads: [Self] = [
    Self("only the recipient reads a payload, which is then marked read") { store in
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
    Self("a payload that is stored again keeps the latest expiry") { store in
      let id = SecurePayloadID.random()
      for seconds in [60, 90, 30] {
        try await store.store("p", id: id, hub: store.hub, recipient: "bob", expiresAt: .start + .seconds(seconds))
      }
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start + .seconds(89)) != nil)
      #expect(try await store.read(id, hub: store.hub, recipient: "bob", at: .start + .seconds(90)) == nil)
    },
    Self("a payload can be discarded, and an id is used once") { store in
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

extension DeviceRegistryConformance {
  /// Claims of idempotency keys.
  static let sendClaims: [Self] = [
    Self("the first claim of a key is kept until it expires") { store in
      let first = claim(store.hub)
      let held = try await store.claim(first, lifetime: .seconds(60))
      #expect(held == first)
      let later = UnixTime.start + .milliseconds(59_999)
      #expect(try await store.claim(claim(store.hub, at: later), lifetime: .seconds(60)) == first)
      #expect(try await store.claim(claim(store.hub, request: 9, at: later), lifetime: .seconds(60)) == first)
      let second = claim(store.hub, request: 9, at: .start + .seconds(60))
      #expect(try await store.claim(second, lifetime: .seconds(60)) == second)
      #expect(try await store.claim(first, lifetime: .seconds(60)) == second)
    },
    Self("a settled claim stays settled, a new claim of the key is not") { store in
      let first = try await store.claim(claim(store.hub), lifetime: .seconds(60))
      #expect(!first.isSettled)
      try await store.settle(first)
      #expect(try await store.claim(claim(store.hub), lifetime: .seconds(60)).isSettled)
      let second = try await store.claim(claim(store.hub, at: .start + .seconds(60)), lifetime: .seconds(60))
      #expect(!second.isSettled)
      // Too late: another claim holds the key.
      try await store.settle(first)
      #expect(try await store.claim(claim(store.hub, at: .start + .seconds(61)), lifetime: .seconds(60)) == second)
    },
    Self("keys and hubs are independent") { store in
      let other = try #require(HubName("other"))
      for claim in [claim(store.hub), claim(other, request: 2), claim(store.hub, key: 3, request: 3)] {
        let held = try await store.claim(claim, lifetime: .seconds(60))
        #expect(held == claim)
      }
    },
    Self("one of several concurrent claims is kept") { store in
      let claims = (0..<16).map { claim(store.hub, request: $0) }
      let held = try await withThrowingTaskGroup(of: SendClaim.self) { group in
        for claim in claims { group.addTask { try await store.claim(claim, lifetime: .seconds(60)) } }
        return try await group.reduce(into: Set<SendClaim>()) { $0.insert($1) }
      }
      #expect(held.count == 1 && held.isSubset(of: claims))
    },
  ]

  private static func claim(_ hub: HubName, key: UInt8 = 1, request: UInt8 = 1, at time: UnixTime = .start) -> SendClaim
  {
    SendClaim(hub: hub, key: Array(repeating: key, count: 32), request: Array(repeating: request, count: 32), at: time)
  }
}
