import Crypto
import FanfareCore

/// How the rows of devices' templates are stored beside native rows: their platform is another bit, so that the mask of
/// a look-up separates the two kinds at no cost, and their address is the handle and the template's name, so that a
/// handle has one native row and one row for each name. A template without a name is known by its body: an app that is
/// installed again and registers the same one replaces it.
enum TemplateRow {
  /// The bits of a template row's platform are those of `PlatformSet`, shifted by this.
  static let shift: Int64 = 4
  /// Stands between the handle and the template's name, and again before the digest of a body. No handle or name that
  /// is registered has a control character.
  static let separator = UInt8(0x1F)
  /// The most templates of a device.
  static let maximum = 100

  /// The mask of the stored platforms of rows of both kinds.
  static let allKinds = Int64(PlatformSet.all.rawValue) | Int64(PlatformSet.all.rawValue) << shift

  /// The stored address of a template row.
  static func address(handle: String, of template: DeviceTemplate) -> String {
    guard template.name.isEmpty else { return "\(handle)\u{1F}\(template.name)" }
    return "\(handle)\u{1F}\u{1F}\(Hexadecimal.text(SHA256.hash(data: Array(template.body.utf8)).prefix(8)))"
  }

  /// The range of the addresses of a handle (in normal form): from the handle itself to before the end.
  static func end(ofHandle handle: String) -> String { handle + " " }

  /// The handle in a stored address.
  static func handle(in address: String) -> String {
    address.utf8.firstIndex(of: separator).map { String(address[..<$0]) } ?? address
  }

  /// The template's name in a stored address; empty without one.
  static func name(in address: String) -> Substring {
    guard let end = address.utf8.firstIndex(of: separator) else { return "" }
    let name = address[address.utf8.index(after: end)...]
    return name.utf8.first == separator ? "" : name
  }
}

extension Registration {
  /// Whether the registration exists for its template only.
  var isTemplate: Bool { profile?.template != nil }

  /// The address that is stored: no other registration of the hub has it.
  var address: String {
    profile?.template.map { TemplateRow.address(handle: handle, of: $0) } ?? handle
  }

  /// The platform that is stored.
  var storedPlatform: Int16 { platform.storedBit << (isTemplate ? Int16(TemplateRow.shift) : 0) }

  /// The installation whose native row this is: an installation has one.
  /// That of a template or a tile is known by its tag.
  var heldInstallation: String? { isPart ? nil : installation }

  /// The profile as it is stored.
  var profileText: String? { profile.map { String(decoding: JSONWriter.bytes(of: $0), as: UTF8.self) } }

  /// Reads a stored registration. Throws `StoredRegistration.damaged`.
  init(
    stored id: RegistrationID, hub: HubName, user: String, platform: Int64, address: String, tags: [String],
    installation: String?, registeredAt: UnixTime, createdAt: UnixTime, seenAt: UnixTime?, profile: String?,
    validUntil: UnixTime?
  ) throws {
    let isTemplate = platform >= 1 << TemplateRow.shift
    let profile = try profile.map(Self.profile)
    let isPart = isTemplate || profile?.tile != nil
    self.init(
      id: id, hub: hub, user: user, platform: try Platform(stored: platform),
      handle: isTemplate ? TemplateRow.handle(in: address) : address, tags: tags,
      installation: isPart ? Self.installation(in: tags) : installation, registeredAt: registeredAt,
      createdAt: createdAt, seenAt: seenAt, profile: profile, validUntil: validUntil)
  }

  private static func installation(in tags: [String]) -> String? {
    tags.first { $0.utf8.starts(with: Tag.installationPrefix.utf8) }
      .map { String(Substring($0.utf8.dropFirst(Tag.installationPrefix.utf8.count))) }
  }

  private static func profile(stored text: String) throws -> DeviceProfile {
    do { return try DeviceProfile.read(Array(text.utf8)[...]) } catch { throw StoredRegistration.damaged }
  }
}

extension Platform {
  /// Reads a stored platform of either kind of row. Throws `StoredRegistration.damaged` for an unknown one.
  init(stored bit: Int64) throws {
    switch bit < 1 << TemplateRow.shift ? bit : bit >> TemplateRow.shift {
    case 1: self = .apns
    case 2: self = .fcm
    case 4: self = .wns
    default: throw StoredRegistration.damaged
    }
  }

  /// The bit of `PlatformSet` that is stored.
  var storedBit: Int16 { Int16(PlatformSet(self).rawValue) }
}

extension AudienceQuery {
  /// The mask of the stored platforms of the rows that the audience consists of.
  var mask: Int64 {
    guard case .devices = template else { return Int64(platforms.rawValue) }
    return Int64(platforms.rawValue) << TemplateRow.shift
  }
}
