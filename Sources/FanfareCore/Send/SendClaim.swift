/// A request that its caller may repeat without sending twice: what is remembered of the first one under its key.
package struct SendClaim: Hashable, Sendable {
  package let hub: HubName
  /// A digest of the caller and of the key that was given, 32 bytes.
  package let key: [UInt8]
  /// A digest of what was asked for, 32 bytes.
  package let request: [UInt8]
  /// When the key was first given. With the key it tells this use of it from the next one, after the claim has expired.
  package let at: UnixTime
  /// Whether all that was asked for is durable, so that a repetition has nothing left to do.
  package let isSettled: Bool

  package init(hub: HubName, key: [UInt8], request: [UInt8], at: UnixTime, isSettled: Bool = false) {
    self.hub = hub
    self.key = key
    self.request = request
    self.at = at
    self.isSettled = isSettled
  }
}

/// Where the front end remembers claims. All front ends that share a store see each other's claims; throws
/// `RegistryError`.
package protocol SendClaimStore: Sendable {
  /// Makes the claim, durably, unless its key is claimed already by a claim that is younger than `lifetime`; returns
  /// the claim that holds.
  func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim

  /// Remembers, durably, that all that was asked for is durable. Nothing happens where the claim no longer holds.
  func settle(_ claim: SendClaim) async throws
}
