/// To whom a send goes.
package enum Audience: Hashable, Sendable {
  /// Every device of one user: those tagged `username:<name>`.
  case user(String)
  /// Every device that carries the tag.
  case tag(String)
  /// One registration.
  case registration(RegistrationID)
  /// One device by its handle, registered or not.
  case device(Platform, handle: String)
  /// Every device that carries at least one of the tags: 1 to `maximumTags`, sorted by their bytes, each once
  /// (`init(anyOf:)`).
  case tags([String])
  /// Every device for whose tags the expression holds.
  case expression(TagExpression)
  /// Every device of the hub.
  case everyone

  /// The most tags of which a device may be asked to carry one.
  package static let maximumTags = 64

  /// The devices that carry at least one of the tags, in the form that equal audiences share.
  package init(anyOf tags: [String]) {
    // By bytes: texts that merely look the same are two users' tags.
    let sorted = tags.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    self = .tags(
      sorted.enumerated().filter { $0.offset == 0 || !sorted[$0.offset - 1].utf8.elementsEqual($0.element.utf8) }.map(
        \.element))
  }

  /// The tag that leads to the devices; nil where no single tag does.
  package var tag: String? {
    switch self {
    case .user(let name): Tag.username(name)
    case .tag(let tag): tag
    case .registration, .device, .tags, .expression, .everyone: nil
    }
  }

  /// Whether the audience may be of any size: not one user's devices, nor a single one.
  package var isBroadcast: Bool {
    switch self {
    case .user, .registration, .device: false
    case .tag(let tag): Tag.user(of: tag) == nil
    case .tags, .expression, .everyone: true
    }
  }

  /// The key of the send's record: sends to one user share a partition and so keep their order; the send's own id where
  /// there is no single user.
  package func recordKey(of send: SendID, hub: HubName) -> [UInt8] {
    var key: [UInt8] = []
    func append(prefix: String, _ name: String) {
      key.reserveCapacity(hub.rawValue.utf8.count + 1 + prefix.utf8.count + name.utf8.count)
      if hub != .default {
        key.append(contentsOf: hub.rawValue.utf8)
        key.append(UInt8(ascii: "/"))
      }
      key.append(contentsOf: prefix.utf8)
      key.append(contentsOf: name.utf8)
    }
    switch self {
    case .user(let name): append(prefix: Tag.usernamePrefix, name)
    case .tag(let tag) where Tag.user(of: tag) != nil: append(prefix: "", tag)
    case .tag, .registration, .device, .tags, .expression, .everyone: send.append(to: &key)
    }
    return key
  }
}
