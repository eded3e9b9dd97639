/// What an app says to register by installation.
package struct InstallationRequest: Hashable, Sendable {
  /// The app's own lasting id of its installation.
  package let installation: String
  package let hub: HubName
  /// The authenticated user.
  package let user: String
  package let platform: Platform
  /// A sound handle of the platform; normalised by the registry.
  package let handle: String
  /// The tags that the device shall carry besides the user's and the installation's own; sound tags (`Tag.isValid`).
  package let tags: [String]

  package init(
    installation: String, hub: HubName, user: String, platform: Platform, handle: String, tags: [String] = []
  ) {
    self.installation = installation
    self.hub = hub
    self.user = user
    self.platform = platform
    self.handle = handle
    self.tags = tags
  }
}
