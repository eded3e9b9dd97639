/// Phantom type of a registration's id.
package enum RegistrationSubject {}

/// The id of a device registration: random, hence uniformly distributed.
package typealias RegistrationID = Identifier<RegistrationSubject>

/// A device of one user.
package struct Registration: Hashable, Sendable {
  package var id: RegistrationID
  package let hub: HubName
  /// The user who last completed the registration. The device belongs to this user alone.
  package let user: String
  package let platform: Platform
  /// The device's address at the push service, in normal form (`DeviceHandle.normalized`).
  package let handle: String
  /// All tags of the device, including the user's tag, sorted.
  package let tags: [String]
  /// The installation that registered it; nil for a registration by handle.
  package let installation: String?
  /// When the app last reported this handle.
  /// A service's report that the device is gone is compared with it.
  package var registeredAt: UnixTime
  /// When the current user first completed it.
  package var createdAt: UnixTime
  /// When the app last contacted the front end; not before `registeredAt`.
  package var seenAt: UnixTime
  /// Templates, language, time zone and attributes; nil if the app reported none.
  package let profile: DeviceProfile?
  /// When the registration ends unless its app renews it; nil: never. Only installations have such an end.
  package let validUntil: UnixTime?

  package init(
    id: RegistrationID, hub: HubName, user: String, platform: Platform, handle: String, tags: [String],
    installation: String?, registeredAt: UnixTime, createdAt: UnixTime, seenAt: UnixTime? = nil,
    profile: DeviceProfile? = nil, validUntil: UnixTime? = nil
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
    self.profile = profile
    self.validUntil = validUntil
  }

  /// Whether it is a template or a secondary tile: if it has an installation, that has a registration of its own.
  package var isPart: Bool { profile.map { $0.template != nil || $0.tile != nil } ?? false }
}

extension Registration: JSONWritable {
  /// Writes the registration as its user and operators see it, and as it is exported.
  package func write(to json: inout JSONWriter) { json.object(writeMembers) }

  package func writeMembers(to json: inout JSONWriter) {
    json.member("id", id)
    json.member("user", user)
    json.member("platform", platform)
    json.member("handle", handle)
    json.member("installation", ifPresent: installation)
    json.member("tags", tags)
    profile?.writeMembers(to: &json)
    json.member("registeredAt", registeredAt)
    json.member("createdAt", createdAt)
    json.member("lastSeen", seenAt)
    json.member("validUntil", ifPresent: validUntil)
  }

  /// The registration as a JSON object.
  package var json: [UInt8] { JSONWriter.bytes(of: self, capacity: 512) }
}

/// A request of an app to register a device: by an id that was issued to it, or by installation.
package struct DeviceRequest: Hashable, Sendable {
  /// The id that was issued to the app; nil by installation.
  package let id: RegistrationID?
  /// The app's permanent id of its installation; nil by handle.
  package let installation: String?
  package let hub: HubName
  /// The authenticated user.
  package let user: String
  package var platform: Platform
  /// A valid handle of the platform. The registry normalizes it.
  package var handle: String
  /// The device's tags besides the user's and the installation's own; valid tags (`Tag.isValid`).
  package var tags: [String]
  /// That of an installation has no template: its templates are in `templates`.
  package var profile: DeviceProfile?
  /// The installation's templates, each a registration of its own; they replace all former ones.
  package var templates: [Template]
  /// The installation's secondary tiles, each a registration of its own with its templates; they replace all former
  /// ones.
  package var tiles: [Tile]
  /// When the installation ends unless it is renewed; nil: never.
  package let validUntil: UnixTime?
  /// Whether the caller may register for any user: then the rules of ownership do not apply, and an id that does not
  /// exist is created.
  package let isTrusted: Bool

  /// A template of an installation.
  package struct Template: Hashable, Sendable {
    /// Its name is not empty, and no other template of the installation has it.
    package let template: DeviceTemplate
    /// Tags that it has besides the installation's.
    package let tags: [String]
    /// As `DeviceProfile.azure`, in addition to the installation's.
    package let azure: [String: String]

    package init(_ template: DeviceTemplate, tags: [String] = [], azure: [String: String] = [:]) {
      (self.template, self.tags, self.azure) = (template, tags, azure)
    }
  }

  /// A secondary tile of an app on Windows: a further channel of the same device.
  package struct Tile: Hashable, Sendable {
    /// No other tile of the installation has it.
    package let name: String
    /// A channel that neither the installation nor another tile has.
    package let handle: String
    /// The tile's own tags; it does not have those of the installation.
    package let tags: [String]
    package let templates: [Template]

    package init(_ name: String, handle: String, tags: [String] = [], templates: [Template] = []) {
      (self.name, self.handle, self.tags, self.templates) = (name, handle, tags, templates)
    }

    /// The tiles among the registrations of an installation.
    package static func all(in rows: [Registration]) -> [Tile] {
      rows.compactMap { row in
        guard let name = row.profile?.tile, row.profile?.template == nil else { return nil }
        return Tile(
          name, handle: row.handle, tags: row.tags.filter { !Tag.isReserved($0) },
          templates: rows.compactMap { other in
            guard other.profile?.tile == name, let template = other.profile?.template else { return nil }
            // The registry adds the template's name.
            return Template(
              template, tags: other.tags.filter { !row.tags.contains($0) && $0 != template.name },
              azure: other.profile?.azure ?? [:])
          })
      }
    }
  }

  package init(
    id: RegistrationID? = nil, installation: String? = nil, hub: HubName, user: String, platform: Platform,
    handle: String, tags: [String] = [], profile: DeviceProfile? = nil, templates: [Template] = [], tiles: [Tile] = [],
    validUntil: UnixTime? = nil, isTrusted: Bool = false
  ) {
    self.id = id
    self.installation = installation
    self.hub = hub
    self.user = user
    self.platform = platform
    self.handle = handle
    self.tags = tags
    self.profile = profile
    self.templates = templates
    self.tiles = tiles
    self.validUntil = validUntil
    self.isTrusted = isTrusted
  }

  /// The request that registers a device again as it is, without templates and tiles.
  package init(again registration: Registration) {
    self.init(
      installation: registration.installation, hub: registration.hub, user: registration.user,
      platform: registration.platform, handle: registration.handle, tags: registration.tags,
      profile: registration.profile, validUntil: registration.validUntil)
  }

  /// The number of its registrations.
  package var count: Int { tiles.reduce(1 + templates.count) { $0 + 1 + $1.templates.count } }
}
