/// One question to the registry: which devices of a hub does this audience reach on these platforms?
package struct AudienceQuery: Hashable, Sendable {
  package let hub: HubName
  package let audience: Audience
  package let platforms: PlatformSet
  /// Of an audience that names one registration: whose it was by then; nil: whosever it is now. Nothing to other
  /// audiences.
  package let createdBefore: UnixTime?

  package init(hub: HubName, audience: Audience, platforms: PlatformSet, createdBefore: UnixTime? = nil) {
    self.hub = hub
    self.audience = audience
    self.platforms = platforms
    self.createdBefore = createdBefore
  }
}
