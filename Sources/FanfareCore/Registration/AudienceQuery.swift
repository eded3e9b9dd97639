/// One question to the registry: which devices of a hub does this audience reach on these platforms?
package struct AudienceQuery: Hashable, Sendable {
  package let hub: HubName
  package let audience: Audience
  package let platforms: PlatformSet

  package init(hub: HubName, audience: Audience, platforms: PlatformSet) {
    self.hub = hub
    self.audience = audience
    self.platforms = platforms
  }
}
