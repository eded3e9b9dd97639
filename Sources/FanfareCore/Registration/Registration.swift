/// Phantom type of a registration's id.
package enum RegistrationSubject {}

/// The id of a device registration: random, hence uniformly distributed.
package typealias RegistrationID = Identifier<RegistrationSubject>

/// One device that one user receives on.
package struct Registration: Hashable, Sendable {
  package let id: RegistrationID
  package let hub: HubName
  /// The user who completed the registration last: the device belongs to nobody else.
  package let user: String
  package let platform: Platform
  /// The push service's address of the device, in the platform's normal form (`DeviceHandle.normalized`).
  package let handle: String
  /// Everything it can be addressed by, the user's tag included, sorted.
  package let tags: [String]
  /// The installation it was registered by; nil for a registration by handle.
  package let installation: String?
  /// When the app reported this handle last: what a service's verdict is compared with.
  package let registeredAt: UnixTime
  /// When the present user completed it first.
  package let createdAt: UnixTime
  /// When the app was heard of last; not before `registeredAt`.
  package let seenAt: UnixTime

  package init(
    id: RegistrationID, hub: HubName, user: String, platform: Platform, handle: String, tags: [String],
    installation: String?,
    registeredAt: UnixTime, createdAt: UnixTime, seenAt: UnixTime? = nil
  ) {
    self.id = id
    self.hub = hub
    self.user = user
    self.platform = platform
    self.handle = handle
    self.tags = tags
    self.installation = installation
    self.registeredAt = registeredAt
    self.createdAt = createdAt
    self.seenAt = max(seenAt ?? registeredAt, registeredAt)
  }
}
