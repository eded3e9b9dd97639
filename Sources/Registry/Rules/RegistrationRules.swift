package import FanfareCore

/// The rules of registering, the same for every store.
package enum RegistrationRules {
  /// The time within which an issued id must be completed.
  package static let pendingLifetime: Duration = .seconds(3600)

  /// The app must request a new id. The message is the same for every cause, so that it reveals nothing about another
  /// user's registration.
  package static let gone = RegistryError(.gone, "the registration is gone; request a new id")

  package static let unknown = RegistryError(.notFound, "there is no such registration")
  package static let changed = RegistryError(.changed, "the registration has changed")

  /// All tags of a registration, sorted: those that the app gives, the user's own, the installation's and the time
  /// zone's. Time zones among the given ones are left out: the tag follows the profile.
  ///
  /// Throws `.forbidden` for another user's or installation's tag, and for an invalid user, tag or installation: a
  /// store that ends a text at a NUL would otherwise store another user's tag. A trusted caller may give the tag of any
  /// installation.
  static func tags(
    of user: String, given: [String], installation: String? = nil, timeZone: String? = nil, isTrusted: Bool = false
  ) throws(RegistryError) -> [String] {
    guard UserName.isValid(user) else { throw RegistryError(.forbidden, "user: must be \(UserName.rule)") }
    var tags = [Tag.username(user)]
    if let installation {
      let tag = Tag.installationPrefix + installation
      guard !installation.isEmpty, Tag.isValid(tag) else {
        throw RegistryError(.forbidden, "installation: with its prefix it must be a tag of \(Tag.rule)")
      }
      tags.append(tag)
    }
    if let timeZone {
      let tag = Tag.timeZone(timeZone)
      guard !timeZone.isEmpty, Tag.isValid(tag) else {
        throw RegistryError(.forbidden, "timeZone: must be the name of a time zone")
      }
      tags.append(tag)
    }
    for tag in given where Tag.timeZone(of: tag) == nil {
      if let named = Tag.user(of: tag) {
        guard named.hasSameBytes(as: user) else {
          throw RegistryError(.forbidden, "tags: a tag with \(Tag.usernamePrefix) must name the caller")
        }
      } else if !isTrusted, tag.utf8.starts(with: Tag.installationPrefix.utf8) {
        // A device with another installation's tag would receive the pushes for it.
        guard let installation, tag.hasSameBytes(as: Tag.installationPrefix + installation) else {
          throw RegistryError(
            .forbidden, "tags: a tag with \(Tag.installationPrefix) must name the device's own installation")
        }
      } else {
        guard Tag.isValid(tag) else { throw RegistryError(.forbidden, "tags: each must be \(Tag.rule)") }
        tags.append(tag)
      }
    }
    tags.sort()
    // Removes duplicates in place: usually there are none.
    for index in tags.indices.dropFirst().reversed() where tags[index] == tags[index - 1] { tags.remove(at: index) }
    return tags
  }

  /// Whether the user may replace the stored registration. The owner may; another user must present the same handle,
  /// which proves that the device has changed hands.
  package static func mayReplace(_ stored: Registration, user: String, platform: Platform, handle: String) -> Bool {
    stored.user.hasSameBytes(as: user) || (stored.platform == platform && stored.handle.hasSameBytes(as: handle))
  }

  /// When the user first had the registration: now, unless the stored one is already the user's.
  ///
  /// Never later than `now`, since when its handle counts: clocks differ, and an imported line may be older than the
  /// stored registration.
  static func createdAt(by user: String, replacing stored: Registration?, at now: UnixTime) -> UnixTime {
    guard let stored, stored.user.hasSameBytes(as: user) else { return now }
    return min(stored.createdAt, now)
  }

  /// The forms in which a handle of an unknown platform may be stored: as given, and in the normal form of each platform
  /// for which it is valid. The last form is used until the platform is known. Empty for a text that is no handle.
  package static func forms(ofHandle handle: String) -> [String] {
    guard !handle.isEmpty, handle.utf8.count <= DeviceHandle.maximumLength, handle.isStorable else { return [] }
    var forms = [handle]
    for platform in Platform.allCases where DeviceHandle.problem(with: handle, platform: platform) == nil {
      let normal = DeviceHandle.normalized(handle, platform: platform)
      if !forms.contains(normal) { forms.append(normal) }
    }
    return forms
  }
}

extension String {
  /// Whether the texts are equal byte for byte. `==` compares by Unicode's canonical equivalence, under which two
  /// different user names may be equal.
  func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  /// Whether the text has no control characters. A database stores such a text unchanged, and it fits on one line.
  var isStorable: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
