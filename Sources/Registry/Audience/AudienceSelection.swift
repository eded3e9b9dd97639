import FanfareCore

/// Selects the rows of an audience by their kind, and makes devices of them.
///
/// Rows of a send without a template are selected by the stored platform alone; for others each row needs its profile.
struct AudienceSelection {
  private enum Variants {
    case none
    /// Of the devices' own templates; of that name, if there is one.
    case own(name: String?)
    case hub(HubTexts)
  }

  /// Registrations of both kinds, without variants.
  static let all = Self(rows: .all, variants: .none, templates: TemplateCache())

  /// The stored platforms of the audience's rows.
  let rows: StoredPlatforms
  private let variants: Variants
  private let templates: TemplateCache

  /// The selection of a query. A version of a hub's template that does not exist selects nothing.
  init(_ query: AudienceQuery, templates: TemplateCache, in table: RegistrationTable) throws {
    self.templates = templates
    switch query.template {
    case nil: (rows, variants) = (query.rows, .none)
    case .devices(let name): (rows, variants) = (query.rows, .own(name: name))
    case .hub(let name, let version):
      let key = HubTexts.Key(hub: query.hub, name: name, version: version)
      let texts = try templates.texts(key) { try table.template(name, version: version) }
      (rows, variants) = texts.map { (query.rows, .hub($0)) } ?? (.none, .none)
    }
  }

  private init(rows: StoredPlatforms, variants: Variants, templates: TemplateCache) {
    (self.rows, self.variants, self.templates) = (rows, variants, templates)
  }

  /// Whether `target` needs the profiles of rows.
  var needsProfile: Bool {
    if case .none = variants { false } else { true }
  }

  /// Whether the row may be of the audience, as far as its platform and address show that.
  func mayContain(platform: Int64, address: String) -> Bool {
    guard rows.contains(platform) else { return false }
    guard case .own(let name?) = variants else { return true }
    return TemplateRow.name(in: address).utf8.elementsEqual(name.utf8)
  }

  /// The device of a row; nil if it is not of the audience, or the template has nothing for it.
  func target(_ row: AudienceRow, profile: String?) throws -> Target? {
    guard mayContain(platform: row.platform, address: row.address) else { return nil }
    let platform = try Platform(row: row.platform)
    var variant: TemplateVariant?
    switch variants {
    case .none: break
    case .own: variant = profile.flatMap { templates.variant(of: $0, for: platform) }
    case .hub(let texts): variant = templates.variant(of: texts, profile: profile, for: platform)
    }
    if needsProfile, variant == nil { return nil }
    return Target(
      registration: row.id, platform: platform,
      handle: row.isTemplate ? TemplateRow.handle(in: row.address) : row.address,
      registeredAt: UnixTime(milliseconds: row.registeredAt), variant: variant)
  }

  /// The device of a registration; nil if it is not of the audience.
  func target(_ registration: Registration) throws -> Target? {
    let row = AudienceRow(
      id: registration.id, platform: Int64(registration.storedPlatform), address: registration.address,
      registeredAt: registration.registeredAt.milliseconds)
    return try target(row, profile: needsProfile ? registration.profileText : nil)
  }
}

/// A row of a tag, handle or registration, as far as a push needs it.
struct AudienceRow {
  let id: RegistrationID
  /// As it is stored; see ``TemplateRow``.
  let platform: Int64
  let address: String
  let registeredAt: Int64

  var isTemplate: Bool { platform >= TemplateRow.firstCode }
}
