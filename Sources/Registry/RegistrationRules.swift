import FanfareCore

/// The rules of registering that do not depend on where registrations are kept.
enum RegistrationRules {
  /// How long an issued id waits to be completed.
  static let pendingLifetime: Duration = .seconds(3600)

  /// The app must ask for a new id. The same words whatever the cause: a stranger learns nothing about somebody else's
  /// registration.
  static let gone = RegistryError(.gone, "the registration is gone; register anew")

  /// Everything that a device can be addressed by, sorted: what the app asks for, the user's own tag, and the
  /// installation's.
  ///
  /// Throws `.forbidden` for another user's or installation's tag, and for a user, tag or installation that breaks the
  /// rules of its kind: a store that cut a text short at a NUL would hand out somebody else's tag.
  static func tags(of user: String, given: [String], installation: String? = nil) throws(RegistryError) -> [String] {
    guard UserName.isValid(user) else { throw RegistryError(.forbidden, "user: must be \(UserName.rule)") }
    var tags = [Tag.username(user)]
    if let installation {
      let tag = Tag.installationPrefix + installation
      guard !installation.isEmpty, Tag.isValid(tag) else {
        throw RegistryError(.forbidden, "installation: with its prefix it must be a tag of \(Tag.rule)")
      }
      tags.append(tag)
    }
    for tag in given {
      if let named = Tag.user(of: tag) {
        guard named.hasSameBytes(as: user) else {
          throw RegistryError(.forbidden, "tags: one that begins with \(Tag.usernamePrefix) may only name the caller")
        }
      } else if tag.utf8.starts(with: Tag.installationPrefix.utf8) {
        // Whoever could carry another device's tag would receive what is sent to it.
        guard let installation, tag.hasSameBytes(as: Tag.installationPrefix + installation) else {
          throw RegistryError(
            .forbidden,
            "tags: one that begins with \(Tag.installationPrefix) may only name the device's own installation")
        }
      } else {
        guard Tag.isValid(tag) else { throw RegistryError(.forbidden, "tags: each must be \(Tag.rule)") }
        tags.append(tag)
      }
    }
    tags.sort()
    // Mostly there is nothing that is there twice.
    for index in tags.indices.dropFirst().reversed() where tags[index] == tags[index - 1] { tags.remove(at: index) }
    return tags
  }

  /// Whether the user may replace what is registered: the owner anything; somebody else only by presenting the very
  /// same handle, which shows that the device has changed hands.
  static func mayReplace(_ stored: Registration, user: String, platform: Platform, handle: String) -> Bool {
    stored.user.hasSameBytes(as: user) || (stored.platform == platform && stored.handle.hasSameBytes(as: handle))
  }

  /// Since when a registration is its user's: from now on, unless it was before. Never after `now`, from which on its
  /// handle counts: the clocks of machines differ, and a file may tell of an earlier time than is stored.
  static func createdAt(by user: String, replacing stored: Registration?, at now: UnixTime) -> UnixTime {
    guard let stored, stored.user.hasSameBytes(as: user) else { return now }
    return min(stored.createdAt, now)
  }

  /// The registration that takes the place of an installation's: its handle counts as reported anew only where it is
  /// another.
  static func revision(
    of former: Registration, by application: InstallationRequest, at now: UnixTime
  ) throws(RegistryError) -> Registration {
    let tags = try tags(of: application.user, given: application.tags, installation: application.installation)
    let handle = DeviceHandle.normalized(application.handle, platform: application.platform)
    guard mayReplace(former, user: application.user, platform: application.platform, handle: handle) else { throw gone }
    let isSame =
      former.user.hasSameBytes(as: application.user) && former.platform == application.platform
      && former.handle.hasSameBytes(as: handle)
    return Registration(
      id: former.id, hub: former.hub, user: application.user, platform: application.platform, handle: handle,
      tags: tags,
      installation: application.installation, registeredAt: isSame ? former.registeredAt : now,
      createdAt: createdAt(by: application.user, replacing: former, at: now), seenAt: now)
  }

  /// The forms in which a handle of an unknown platform may be stored: as given, and in APNs' normal form if it can be
  /// one of its. The last is the form to store it in until the platform is known. Empty for what cannot be a handle
  /// anywhere.
  static func forms(ofHandle handle: String) -> [String] {
    guard !handle.isEmpty, handle.utf8.count <= DeviceHandle.maximumLength, handle.isStorable else { return [] }
    let normal =
      DeviceHandle.problem(with: handle, platform: .apns) == nil
      ? DeviceHandle.normalized(handle, platform: .apns) : handle
    return normal == handle ? [handle] : [handle, normal]
  }
}

extension String {
  /// Whether the texts are equal byte for byte. `==` also holds for texts that merely look the same (Unicode's
  /// canonical equivalence), and two users are two users even then.
  func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  /// Whether the text comes back from a database as it went in and can be one line of a list: no control characters.
  var isStorable: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
