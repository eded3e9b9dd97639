/// The record of the first request with an idempotency key, so that a repetition does not send
/// twice.
package struct SendClaim: Hashable, Sendable {
  package let hub: HubName
  /// A digest of the caller and the idempotency key, 32 bytes.
  package let key: [UInt8]
  /// A digest of the request, 32 bytes.
  package let request: [UInt8]
  /// When the key was first used.
  /// It distinguishes this use of the key from one after the claim has expired.
  package let at: UnixTime
  /// Whether all sends of the request are durable, so that a repetition need not send any.
  package let isSettled: Bool

  package init(hub: HubName, key: [UInt8], request: [UInt8], at: UnixTime, isSettled: Bool = false) {
    self.hub = hub
    self.key = key
    self.request = request
    self.at = at
    self.isSettled = isSettled
  }
}

/// Stores the claims of the front ends, which see each other's claims. Throws `RegistryError`.
package protocol SendClaimStore: Sendable {
  /// Stores the claim durably, unless the key has a claim younger than `lifetime`.
  /// Returns the valid claim.
  func claim(_ claim: SendClaim, lifetime: Duration) async throws -> SendClaim

  /// Stores durably that all sends of the claim are durable.
  /// Does nothing if the claim is no longer valid.
  func settle(_ claim: SendClaim) async throws
}
