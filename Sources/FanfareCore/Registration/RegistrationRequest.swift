/// What an app says to complete a registration by handle.
package struct RegistrationRequest: Hashable, Sendable {
  /// The id issued before.
  package let id: RegistrationID
  package let hub: HubName
  /// The authenticated user.
  package let user: String
  package let platform: Platform
  /// A sound handle of the platform; normalised by the registry.
  package let handle: String
  /// The tags that the device shall carry besides the user's own; sound tags (`Tag.isValid`).
  package let tags: [String]

  package init(id: RegistrationID, hub: HubName, user: String, platform: Platform, handle: String, tags: [String]) {
    self.id = id
    self.hub = hub
    self.user = user
    self.platform = platform
    self.handle = handle
    self.tags = tags
  }
}
