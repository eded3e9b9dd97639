/// The rules for tags, by which devices are addressed.
package enum Tag {
  /// The prefix of the tag that names a device's user. Only the registry adds it.
  package static let usernamePrefix = "username:"
  /// The prefix of the tag that names an installation.
  package static let installationPrefix = "installation:"
  /// The prefix of the tag that names a device's time zone. Only the registry adds it.
  package static let timeZonePrefix = "time-zone:"
  /// The most characters in one tag.
  package static let maximumLength = 120
  /// The most tags that a caller may give one device; reserved tags do not count.
  package static let maximumCount = 60
  /// The rule as stated in error messages.
  package static let rule = "1 to 120 characters of A–Z a–z 0–9 _ @ # . : -"

  /// The rule for installation ids as stated in error messages.
  /// With its prefix an id is a valid tag.
  package static let installationRule =
    "1 to \(maximumLength - installationPrefix.utf8.count) characters of A–Z a–z 0–9 _ @ # . : -"

  /// The tag of a user's devices.
  package static func username(_ user: String) -> String { usernamePrefix + user }

  /// The user whose devices the tag addresses; nil for any other tag.
  ///
  /// Compared by bytes: as characters, a combining mark at the start of a name would merge with the colon and hide the
  /// prefix.
  package static func user(of tag: String) -> String? {
    tag.utf8.starts(with: usernamePrefix.utf8) ? String(Substring(tag.utf8.dropFirst(usernamePrefix.utf8.count))) : nil
  }

  /// The tag of devices in a time zone: `time-zone:Europe.Vienna`, since tags have neither `/` nor `+`.
  package static func timeZone(_ zone: String) -> String {
    timeZonePrefix + zone.replacing("/", with: ".").replacing("+", with: "#")
  }

  /// The time zone that the tag names; nil for any other tag.
  package static func timeZone(of tag: String) -> String? {
    guard tag.utf8.starts(with: timeZonePrefix.utf8) else { return nil }
    return String(Substring(tag.utf8.dropFirst(timeZonePrefix.utf8.count)))
      .replacing(".", with: "/").replacing("#", with: "+")
  }

  /// Whether the text is a valid tag. Reserved prefixes are checked elsewhere.
  package static func isValid(_ tag: String) -> Bool {
    (1...maximumLength).contains(tag.utf8.count) && tag.utf8.allSatisfy(isCharacter)
  }

  /// Whether the text is a valid installation id.
  package static func isInstallation(_ installation: String) -> Bool {
    !installation.isEmpty && isValid(installationPrefix + installation)
  }

  /// Whether a send may use the text as its audience: a valid tag, or a user's.
  package static func isAddressable(_ tag: String) -> Bool {
    isValid(tag) || user(of: tag).map(UserName.isValid) == true
  }

  /// Whether only the registry may give the tag: a user's, an installation's or a time zone's.
  package static func isReserved(_ tag: String) -> Bool {
    tag.utf8.starts(with: usernamePrefix.utf8) || tag.utf8.starts(with: installationPrefix.utf8)
      || tag.utf8.starts(with: timeZonePrefix.utf8)
  }

  /// Whether a valid tag may contain the byte.
  static func isCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "@"), UInt8(ascii: "#"),
      UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

/// The rule for user names.
package enum UserName {
  /// The most bytes of UTF-8 in a name.
  package static let maximumLength = 111
  /// The rule as stated in error messages.
  /// With the prefix of its tag a name is within `Tag.maximumLength`.
  package static let rule = "1 to 111 bytes of UTF-8 without control characters or ':'"

  /// The user of a device that no user has logged in on.
  package static func ofDevice(_ id: RegistrationID) -> String { "\(devicePrefix)\(id)" }

  /// Whether the name stands for a device that no user has logged in on.
  package static func isOfDevice(_ name: String) -> Bool {
    name.hasPrefix(devicePrefix) && RegistrationID(String(name.dropFirst(devicePrefix.count))) != nil
  }

  private static let devicePrefix = "device-"

  /// Whether the text is a valid name.
  /// `:` is excluded because HTTP Basic ends the name there (RFC 7617 §2).
  package static func isValid(_ name: String) -> Bool {
    let bytes = name.utf8Span.span
    guard (1...maximumLength).contains(bytes.count) else { return false }
    for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F || bytes[index] == UInt8(ascii: ":") {
      return false
    }
    return true
  }
}
