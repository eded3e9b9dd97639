/// The audience of a send.
package enum Audience: Hashable, Sendable {
  /// Every device of one user: those with the tag `username:<name>`.
  case user(String)
  /// Every device with the tag.
  case tag(String)
  /// One registration.
  case registration(RegistrationID)
  /// One device by its handle, registered or not.
  case device(Platform, handle: String)
  /// Every device with at least one of the tags: 1 to `maximumTags`, sorted by bytes, each once
  /// (`init(anyOf:)`).
  case tags([String])
  /// Every device whose tags satisfy the expression.
  case expression(TagExpression)
  /// Every device of the hub.
  case everyone

  /// The most tags in `.tags`.
  package static let maximumTags = 64

  /// Every device with at least one of the tags, in canonical form.
  package init(anyOf tags: [String]) {
    // By bytes: canonically equivalent texts are tags of different users.
    let sorted = tags.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    self = .tags(
      sorted.enumerated().filter { $0.offset == 0 || !sorted[$0.offset - 1].utf8.elementsEqual($0.element.utf8) }.map(
        \.element))
  }

  /// The tag that all devices of the audience carry, and no other device; nil if there is none.
  package var tag: String? {
    switch self {
    case .user(let name): Tag.username(name)
    case .tag(let tag): tag
    case .registration, .device, .tags, .expression, .everyone: nil
    }
  }

  /// Whether the audience may be of any size, unlike one user's devices or a single device.
  package var isBroadcast: Bool {
    switch self {
    case .user, .registration, .device: false
    case .tag(let tag): Tag.user(of: tag) == nil
    case .tags, .expression, .everyone: true
    }
  }

  /// Whether a send to it can go out in pages: a broadcast, or a send to a user with very many devices.
  package var mayHavePages: Bool {
    switch self {
    case .registration, .device: false
    case .user, .tag, .tags, .expression, .everyone: true
    }
  }

  /// The key of a send's record: the user's tag, or the send's id if there is no single user.
  ///
  /// Sends to one user therefore share a partition and stay in order.
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

extension Audience {
  /// The audience as text for people and searches.
  /// It does not contain handles; a long list or expression is cut.
  package var text: String {
    switch self {
    case .user(let name): Self.text(of: Tag.username(name))
    case .tag(let tag): Self.text(of: tag)
    case .registration(let id): "registration/\(id)"
    case .device(let platform, _): "device/\(platform)"
    case .tags(let tags): Self.bounded(expression: TagExpression.any(tags.map(TagExpression.tag)).description)
    case .expression(let expression): Self.bounded(expression: expression.description)
    // No tag contains this character.
    case .everyone: "*"
    }
  }

  /// Whether `text` comes from an audience that may be of any size.
  /// An expression that consists of one user's tag counts as that user.
  package static func isBroadcast(text: String) -> Bool {
    guard !text.isEmpty, !text.utf8.starts(with: "registration/".utf8), !text.utf8.starts(with: "device/".utf8) else {
      return false
    }
    return Tag.user(of: text) == nil ? !isQuotedUser(text) : hasOperator(text)
  }

  /// The text of a tag. A user's name may read as an expression, `a && b`: then the tag is quoted as in an expression.
  private static func text(of tag: String) -> String {
    hasOperator(tag) ? TagExpression.tag(tag).description : tag
  }

  private static func hasOperator(_ text: String) -> Bool { text.contains(" && ") || text.contains(" || ") }

  /// Whether an expression consists of one quoted tag of a user.
  private static func isQuotedUser(_ text: String) -> Bool {
    guard text.utf8.starts(with: "\"\(Tag.usernamePrefix)".utf8) else { return false }
    var isEscaped = false
    let end = text.utf8.dropFirst().firstIndex { byte in
      defer { isEscaped = !isEscaped && byte == UInt8(ascii: "\\") }
      return byte == UInt8(ascii: "\"") && !isEscaped
    }
    return end.map { text.utf8.index(after: $0) } == text.utf8.endIndex
  }

  /// Cuts a long expression and ends it with an operator, so that `isBroadcast(text:)` does not
  /// take it for one user.
  private static func bounded(expression: String) -> String {
    let text = bounded(expression)
    return text == expression ? text : String(text.unicodeScalars.dropLast(2)) + " || …"
  }

  /// Cuts a text to 64 characters when it has more than 256 bytes, so that one record cannot fill a
  /// database.
  package static func bounded(_ text: String) -> String {
    text.utf8.count <= 256 ? text : String(text.unicodeScalars.prefix(64))
  }
}
