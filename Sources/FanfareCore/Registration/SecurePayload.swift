/// Phantom type of a secure payload's id.
package enum SecurePayloadSubject {}

/// The id of a secure payload.
package typealias SecurePayloadID = Identifier<SecurePayloadSubject>

/// A payload that push services never see: only its id is pushed, and the recipient fetches it.
package struct SecurePayload: Hashable, Sendable {
  package let id: SecurePayloadID
  package let payload: String
  /// Whether the recipient had fetched it before.
  package let isRead: Bool

  package init(id: SecurePayloadID, payload: String, isRead: Bool) {
    self.id = id
    self.payload = payload
    self.isRead = isRead
  }
}

/// Stores secure payloads until their recipients fetch them.
/// Called by the front end only. Throws `RegistryError`.
package protocol SecurePayloadStore: Sendable {
  /// Stores a payload durably for one recipient until it expires.
  func store(_ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime) async throws

  /// The payload as it was before this call; nil if it does not exist, belongs to another recipient
  /// or has expired. With `isDelivered` it is marked as read.
  func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload?

  /// Removes a payload that could not be announced.
  func discard(_ id: SecurePayloadID, hub: HubName) async throws
}

extension SecurePayloadStore {
  /// The payload as it was before this call. Marks it as read.
  package func read(_ id: SecurePayloadID, hub: HubName, recipient: String, at now: UnixTime) async throws
    -> SecurePayload?
  {
    try await read(id, hub: hub, recipient: recipient, isDelivered: true, at: now)
  }
}
