package import FanfareCore

/// A validated request for a registration, before it has an id.
package struct RegistrationDraft: Sendable {
  let hub: HubName
  let user: String
  let platform: Platform
  /// In normal form.
  let handle: String
  /// All tags, sorted; see ``RegistrationRules/tags(of:given:installation:timeZone:isTrusted:)``.
  let tags: [String]
  let installation: String?
  let profile: DeviceProfile?
  let validUntil: UnixTime?
  let isTrusted: Bool

  /// The draft of a registration, or of a tile or a template of an installation.
  package init(
    _ request: DeviceRequest, _ template: DeviceRequest.Template? = nil,
    of tile: DeviceRequest.Tile? = nil
  ) throws(RegistryError) {
    (hub, user, platform, installation) = (request.hub, request.user, request.platform, request.installation)
    handle = DeviceHandle.normalized(tile?.handle ?? request.handle, platform: request.platform)
    var given = tile?.tags ?? request.tags
    var profile = request.profile
    if let tile {
      profile = profile ?? DeviceProfile()
      profile?.tile = tile.name
    }
    if let template {
      given += template.tags
      // As in Azure Notification Hubs.
      if Tag.isValid(template.template.name), !Tag.isReserved(template.template.name) {
        given.append(template.template.name)
      }
      profile = profile ?? DeviceProfile()
      profile?.template = template.template
      profile?.azure.merge(template.azure) { $1 }
    }
    tags = try RegistrationRules.tags(
      of: request.user, given: given, installation: request.installation, timeZone: profile?.timeZone,
      isTrusted: request.isTrusted)
    self.profile = try RegistrationRules.profile(profile, for: request.platform)
    validUntil = request.validUntil
    isTrusted = request.isTrusted
  }

  /// The address that is stored.
  var address: String { profile?.template.map { TemplateRow.address(handle: handle, of: $0) } ?? handle }

  /// The registration under an id, which may replace a stored one.
  ///
  /// A trusted caller changes an installation's own registration by its id, too. It stays that of the `held` one as
  /// long as its tags name that.
  package func registration(
    _ id: RegistrationID, replacing stored: Registration?, keeping held: String? = nil, at now: UnixTime
  ) -> Registration {
    let kept = held.flatMap { held in
      isTrusted && profile?.template == nil && profile?.tile == nil
        && tags.contains { $0.hasSameBytes(as: Tag.installationPrefix + held) } ? held : nil
    }
    return Registration(
      id: id, hub: hub, user: user, platform: platform, handle: handle, tags: tags,
      installation: installation ?? kept, registeredAt: now,
      createdAt: RegistrationRules.createdAt(by: user, replacing: stored, at: now), profile: profile,
      validUntil: kept == nil ? validUntil : stored?.validUntil)
  }

  /// The registration as a revision of a stored one: `registeredAt` changes only with the user, platform or handle.
  func revision(of former: Registration, at now: UnixTime) -> Registration {
    let isSame =
      former.user.hasSameBytes(as: user) && former.platform == platform && former.handle.hasSameBytes(as: handle)
    var next = registration(former.id, replacing: former, at: now)
    if isSame { next.registeredAt = former.registeredAt }
    return next
  }
}

/// A validated request for an installation: its own registration, and one for each template and tile.
struct InstallationDraft: Sendable {
  let installation: String
  let native: RegistrationDraft
  let templates: [RegistrationDraft]
  /// The tiles and their templates.
  let tiles: [RegistrationDraft]

  init(_ request: DeviceRequest) throws(RegistryError) {
    guard let installation = request.installation else {
      throw RegistryError(.forbidden, "installation: is missing")
    }
    self.installation = installation
    guard request.profile?.template == nil else {
      throw RegistryError(.forbidden, "template: an installation has its templates in `templates`")
    }
    guard request.count <= 1 + TemplateRow.maximum else { throw TemplateRow.tooMany }
    native = try RegistrationDraft(request)
    templates = try Self.drafts(request, request.templates)
    var tiles: [RegistrationDraft] = []
    var (names, handles): (Set<[UInt8]>, Set<[UInt8]>) = ([], [Array(native.handle.utf8)])
    for tile in request.tiles {
      let draft = try RegistrationDraft(request, of: tile)
      guard names.insert(Array(tile.name.utf8)).inserted, handles.insert(Array(draft.handle.utf8)).inserted else {
        throw RegistryError(.forbidden, "tiles: each must have a name and a channel of its own")
      }
      tiles.append(draft)
      tiles += try Self.drafts(request, tile.templates, of: tile)
    }
    self.tiles = tiles
  }

  private static func drafts(
    _ request: DeviceRequest, _ templates: [DeviceRequest.Template],
    of tile: DeviceRequest.Tile? = nil
  ) throws(RegistryError) -> [RegistrationDraft] {
    var names: Set<[UInt8]> = []
    var drafts: [RegistrationDraft] = []
    for template in templates {
      let name = template.template.name
      guard !name.isEmpty, names.insert(Array(name.utf8)).inserted else {
        throw RegistryError(.forbidden, "templates: each must have a name of its own")
      }
      drafts.append(try RegistrationDraft(request, template, of: tile))
    }
    return drafts
  }
}

extension TemplateRow {
  static let tooMany = RegistryError(.conflict, "templates: a device has at most \(maximum), its tiles among them")
}

extension RegistrationRules {
  /// The profile to store: nil if there is nothing in it. Throws `.forbidden` for one that no push could use: the front
  /// end has checked it before.
  static func profile(_ profile: DeviceProfile?, for platform: Platform) throws(RegistryError) -> DeviceProfile? {
    guard let profile, !profile.isEmpty else { return nil }
    func refused(_ reason: String) -> RegistryError { RegistryError(.forbidden, reason) }
    guard JSONWriter.bytes(of: profile, capacity: 512).count <= DeviceProfile.maximumLength else {
      throw refused("profile: must have at most \(DeviceProfile.maximumLength) bytes as JSON")
    }
    guard profile.attributes.count <= DeviceProfile.maximumAttributes else {
      throw refused("attributes: there are at most \(DeviceProfile.maximumAttributes)")
    }
    if let tile = profile.tile {
      guard platform.vocabulary.hasTiles else { throw refused("tile: belongs to devices with Windows") }
      guard DeviceTemplate.isName(tile) else { throw refused("tile: must be a name of \(DeviceTemplate.nameRule)") }
    }
    guard let template = profile.template else { return profile }
    guard template.name.isStorable, template.name.unicodeScalars.count <= DeviceTemplate.maximumNameLength else {
      throw refused(
        "template.name: must have at most \(DeviceTemplate.maximumNameLength) characters and no control characters")
    }
    do throws(DeviceTemplate.Fault) { try template.check(on: platform) } catch {
      if case .header = error { throw refused("template.\(error)") }
      throw refused("template: \(error)")
    }
    return profile
  }
}
