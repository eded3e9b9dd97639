/// A stored API key: its owner and rights, and a digest in place of its secret.
package struct StoredAPIKey: Hashable, Sendable {
  /// The most keys of one hub.
  package static let maximumCount = 10_000
  /// The most bytes of a comment.
  package static let maximumCommentLength = 200

  package let hub: HubName
  /// Letters and digits; unique in the hub.
  package let id: String
  /// A valid user name (`UserName.isValid`).
  package let user: String
  /// The names of the scopes, in any order.
  package let scopes: [String]
  /// A note for operators, without control characters; may be empty.
  package let comment: String
  /// SHA-256 of the secret, 32 bytes.
  package let digest: [UInt8]
  package let createdAt: UnixTime
  /// Nil: the key does not expire.
  package let expiresAt: UnixTime?
  /// The start of the day (UTC) on which the key was used last; nil if it was never used.
  package var lastUsedDay: UnixTime?

  package init(
    hub: HubName, id: String, user: String, scopes: [String], comment: String = "", digest: [UInt8],
    createdAt: UnixTime, expiresAt: UnixTime? = nil, lastUsedDay: UnixTime? = nil
  ) {
    self.hub = hub
    self.id = id
    self.user = user
    self.scopes = scopes
    self.comment = comment
    self.digest = digest
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.lastUsedDay = lastUsedDay
  }

  /// Whether the key has expired.
  package func isExpired(at now: UnixTime) -> Bool { expiresAt.map { $0 <= now } ?? false }
}

/// Stores the API keys of all hubs. All front ends share it. Throws `RegistryError`.
package protocol APIKeyStore: Sendable {
  /// Stores a key. Throws `.conflict` if the id exists in the hub, or the hub has the maximum number of keys.
  func addAPIKey(_ key: StoredAPIKey) async throws

  /// The key with this id; nil if there is none in this hub. Returns expired keys too.
  func apiKey(_ id: String, hub: HubName) async throws -> StoredAPIKey?

  /// All keys of a hub, the oldest first; those of the same time by id.
  func apiKeys(hub: HubName) async throws -> [StoredAPIKey]

  /// Removes a key. Returns false if there was none.
  func removeAPIKey(_ id: String, hub: HubName) async throws -> Bool

  /// Stores that a key was used on the day that begins at this time. Earlier days have no effect.
  func markAPIKeyUsed(_ id: String, hub: HubName, day: UnixTime) async throws
}

extension UnixTime {
  /// The start of the day in UTC.
  package var startOfDay: UnixTime {
    let day: Int64 = 86_400_000
    let rest = milliseconds % day
    return UnixTime(milliseconds: milliseconds - (rest < 0 ? rest + day : rest))
  }
}
