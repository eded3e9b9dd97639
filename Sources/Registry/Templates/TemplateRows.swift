import Crypto
import FanfareCore

/// How the rows of devices' templates are stored beside native rows: their platform is another number, so that a look-up
/// separates the two kinds at no cost, and their address is the handle and the template's name, so that a
/// handle has one native row and one row for each name. A template without a name is known by its body: an app that is
/// installed again and registers the same one replaces it.
enum TemplateRow {
  /// The number of a template row's platform is the platform's code and this.
  static let firstCode: Int64 = 64
  /// Stands between the handle and the template's name, and again before the digest of a body. No handle or name that
  /// is registered has a control character.
  static let separator = UInt8(0x1F)
  /// The most templates of a device.
  static let maximum = 100

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

  /// The installation of a template or a tile.
  static func installation(in tags: [String]) -> String? {
    tags.first { $0.utf8.starts(with: Tag.installationPrefix.utf8) }
      .map { String(Substring($0.utf8.dropFirst(Tag.installationPrefix.utf8.count))) }
  }
}

extension Platform {
  /// Reads the platform of a row of either kind. Throws `StoredRegistration.damaged` for an unknown one.
  init(row platform: Int64) throws {
    let code = platform < TemplateRow.firstCode ? platform : platform - TemplateRow.firstCode
    guard let platform = Platform(stored: code) else { throw StoredRegistration.damaged }
    self = platform
  }
}

/// The rows that an audience consists of, by their stored platforms.
struct StoredPlatforms {
  /// The bits of the codes of native rows, and of template rows.
  private let native: UInt64
  private let templates: UInt64

  /// Rows of both kinds.
  static let all = Self(native: PlatformSet.all, templates: PlatformSet.all)
  static let none = Self(native: [], templates: [])

  init(native: PlatformSet, templates: PlatformSet) {
    (self.native, self.templates) = (native.rawValue, templates.rawValue)
  }

  func contains(_ platform: Int64) -> Bool {
    (platform < TemplateRow.firstCode ? native : templates) >> UInt64(platform & 63) & 1 != 0
  }

  /// The values of ``condition(native:templates:)``.
  var bits: (native: Int64, templates: Int64) { (Int64(bitPattern: native), Int64(bitPattern: templates)) }

  /// The condition in SQL that the column `platform` is one of these, which are given by the two parameters.
  static func condition(native: String, templates: String) -> String {
    "(CASE WHEN platform < \(TemplateRow.firstCode) THEN \(native) ELSE \(templates) END >> (platform & 63) & 1)"
  }
}

extension AudienceQuery {
  /// The rows that the audience consists of.
  var rows: StoredPlatforms {
    guard case .devices = template else { return StoredPlatforms(native: platforms, templates: []) }
    return StoredPlatforms(native: [], templates: platforms)
  }
}
