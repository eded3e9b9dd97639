import FanfareCore

/// A claim to an id for an iPhone.
func application(_ id: RegistrationID, _ user: String, _ handle: String, tags: [String] = []) -> RegistrationRequest {
  RegistrationRequest(id: id, hub: .default, user: user, platform: .apns, handle: handle, tags: tags)
}

/// A question about the default hub and every platform.
func query(_ audience: Audience) -> AudienceQuery {
  AudienceQuery(hub: .default, audience: audience, platforms: .all)
}
