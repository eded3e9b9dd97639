import FanfareCore
import Testing

extension DeviceRegistryConformance {
  /// Requests that may be repeated.
  static let sendClaims: [Self] = [
    Self("the first claim of a key holds until it expires") { store in
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
    Self("a settled claim is found settled, and a key that is claimed anew is not") { store in
      let first = try await store.claim(claim(store.hub), lifetime: .seconds(60))
      #expect(!first.isSettled)
      try await store.settle(first)
      #expect(try await store.claim(claim(store.hub), lifetime: .seconds(60)).isSettled)
      let second = try await store.claim(claim(store.hub, at: .start + .seconds(60)), lifetime: .seconds(60))
      #expect(!second.isSettled)
      // Late, and no longer about the claim that holds.
      try await store.settle(first)
      #expect(try await store.claim(claim(store.hub, at: .start + .seconds(61)), lifetime: .seconds(60)) == second)
    },
    Self("keys of two hubs, and two keys, have nothing to do with each other") { store in
      let other = try #require(HubName("other"))
      for claim in [claim(store.hub), claim(other, request: 2), claim(store.hub, key: 3, request: 3)] {
        let held = try await store.claim(claim, lifetime: .seconds(60))
        #expect(held == claim)
      }
    },
    Self("of claims that are made at once, one holds") { store in
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
