import Crypto
import FanfareCore

/// Tells why a document of a client is not valid. Names the field, never its value.
struct InvalidDescription: Error, Hashable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// The tags of a device as Azure's clients write and read them; see `AzureTag`.
struct AzureTags: Hashable, Sendable {
  /// In the project's form, without the user's and the installation's.
  private(set) var tags: [String] = []
  /// The user that a tag names.
  private(set) var user: String?
  /// The installation that a tag names.
  private(set) var installation: String?

  init() {}

  /// The tags of a row without those that the registry adds.
  init(ofRow tags: [String]) { self.tags = tags.filter { !Tag.isReserved($0) } }

  /// Reads a list with commas, which divide no name in braces. White space around a tag is ignored.
  init(list: String, field: String) throws(InvalidDescription) {
    var isInBraces = false
    let tags = list.split { character in
      if character == "{" { isInBraces = true } else if character == "}" { isInBraces = false }
      return character == "," && !isInBraces
    }
    for tag in tags {
      let tag = tag.trimmingSpace
      if !tag.isEmpty { try add(tag, field: field) }
    }
  }

  /// Adds a tag in Azure's form, unless it is there already.
  mutating func add(_ tag: String, field: String) throws(InvalidDescription) {
    let translated = Self.translated(tag)
    if let name = Tag.user(of: translated) {
      guard UserName.isValid(name) else { throw InvalidDescription("\(field): a user's name must be \(UserName.rule)") }
      guard user ?? name == name else { throw InvalidDescription("\(field) must not name two users") }
      user = name
    } else if translated.hasPrefix(Tag.installationPrefix) {
      let id = String(translated.dropFirst(Tag.installationPrefix.count))
      guard Tag.isInstallation(id) else {
        throw InvalidDescription("\(field): an installation's id must be \(Tag.installationRule)")
      }
      guard installation ?? id == id else { throw InvalidDescription("\(field) must not name two installations") }
      installation = id
    } else {
      guard Tag.isValid(translated) else { throw InvalidDescription("\(field): a tag must be \(Tag.rule)") }
      guard !tags.contains(translated) else { return }
      guard tags.count < Tag.maximumCount else {
        throw InvalidDescription("\(field) must have at most \(Tag.maximumCount) tags")
      }
      tags.append(translated)
    }
  }

  /// Removes a tag in Azure's form. Missing tags are ignored.
  mutating func remove(_ tag: String) {
    let translated = Self.translated(tag)
    tags.removeAll { $0 == translated }
    if let user, translated == Tag.username(user) { self.user = nil }
  }

  /// The project's form of a tag in Azure's.
  static func translated(_ tag: String) -> String { AzureTag.translated(tag) ?? tag }

  /// The tags of a registration in Azure's form: first the installation, then the others.
  ///
  /// A user that was made up for the device is left out. A user's tag keeps the form `username:x` at registrations by
  /// handle: back ends that follow Microsoft's tutorial set and compare it.
  static func list(of registration: Registration) -> [String] {
    var list: [String] = []
    let named = registration.tags.first { $0.hasPrefix(Tag.installationPrefix) }
      .map { String($0.dropFirst(Tag.installationPrefix.count)) }
    if let installation = registration.installation ?? named { list.append("$InstallationId:{\(installation)}") }
    for tag in registration.tags where !tag.hasPrefix(Tag.installationPrefix) {
      if let user = Tag.user(of: tag) {
        guard !UserName.isOfDevice(user) else { continue }
        let isPlain = !user.contains(",") && user == user.trimmingSpace
        list.append(registration.installation == nil && isPlain ? tag : "$UserId:{\(user)}")
      } else {
        list.append(tag)
      }
    }
    return list
  }
}

extension RegistrationID {
  /// The row of an id in a path: a UUID is itself; any other id is mapped to a UUID by its SHA-256.
  init(azure id: String) {
    if let id = RegistrationID(id) {
      self = id
      return
    }
    var words: (high: UInt64, low: UInt64) = (0, 0)
    for (index, byte) in SHA256.hash(data: Array(id.utf8)).prefix(16).enumerated() {
      if index < 8 { words.high = words.high << 8 | UInt64(byte) } else { words.low = words.low << 8 | UInt64(byte) }
    }
    // Version 8, for UUIDs of an application's own making (RFC 9562 §5.8).
    self.init(
      high: words.high & 0xFFFF_FFFF_FFFF_0FFF | 0x8000,
      low: words.low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }
}

extension StringProtocol {
  /// Without white space at both ends.
  var trimmingSpace: String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }
}
