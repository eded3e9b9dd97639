/// The rules of tags: what a device can be addressed by.
package enum Tag {
  /// The prefix that only the registry gives out: it says whose device it is.
  package static let usernamePrefix = "username:"
  /// The prefix of the tag that names an installation.
  package static let installationPrefix = "installation:"
  /// The most characters in one tag.
  package static let maximumLength = 120
  /// The most tags that a caller may give one device, not counting those that the registry gives.
  package static let maximumCount = 60
  /// The rule, as error messages state it.
  package static let rule = "1 to 120 characters of A–Z a–z 0–9 _ @ # . : -"

  /// The rule of installations' ids, as error messages state it: with the prefix of its tag an id is a sound tag.
  package static let installationRule =
    "1 to \(maximumLength - installationPrefix.utf8.count) characters of A–Z a–z 0–9 _ @ # . : -"

  /// The tag of a user's devices.
  package static func username(_ user: String) -> String { usernamePrefix + user }

  /// The user whose devices the tag addresses; nil for any other tag. Judged by bytes: as characters, a name that
  /// begins with a combining mark would fuse with the colon and hide the prefix.
  package static func user(of tag: String) -> String? {
    tag.utf8.starts(with: usernamePrefix.utf8) ? String(Substring(tag.utf8.dropFirst(usernamePrefix.utf8.count))) : nil
  }

  /// Whether a caller may use the text as a tag (reserved prefixes are judged elsewhere).
  package static func isValid(_ tag: String) -> Bool {
    (1...maximumLength).contains(tag.utf8.count) && tag.utf8.allSatisfy(isCharacter)
  }

  /// Whether the text can be an installation's id.
  package static func isInstallation(_ installation: String) -> Bool {
    !installation.isEmpty && isValid(installationPrefix + installation)
  }

  /// Whether a sender may address devices by the text: a sound tag, or a user's.
  package static func isAddressable(_ tag: String) -> Bool {
    isValid(tag) || user(of: tag).map(UserName.isValid) == true
  }

  /// Whether the tag is one that the registry itself gives: a user's or an installation's.
  package static func isReserved(_ tag: String) -> Bool {
    tag.utf8.starts(with: usernamePrefix.utf8) || tag.utf8.starts(with: installationPrefix.utf8)
  }

  /// Whether the byte is one of those that sound tags are made of.
  static func isCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "_"), UInt8(ascii: "@"), UInt8(ascii: "#"), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
