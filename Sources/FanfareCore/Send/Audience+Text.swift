extension Audience {
  /// To whom, for people and for searching. A device's handle is an address and stays out; a long list or expression is
  /// cut.
  package var text: String {
    switch self {
    case .user(let name): Tag.username(name)
    case .tag(let tag): tag
    case .registration(let id): "registration/\(id)"
    case .device(let platform, _): "device/\(platform)"
    case .tags(let tags): Self.bounded(expression: TagExpression.any(tags.map(TagExpression.tag)).description)
    case .expression(let expression): Self.bounded(expression: expression.description)
    // No tag has this character.
    case .everyone: "*"
    }
  }

  /// Whether `text` was made of an audience that may be of any size. An expression that is one user's tag alone is
  /// taken for that user.
  package static func isBroadcast(text: String) -> Bool {
    guard !text.isEmpty, !text.utf8.starts(with: "registration/".utf8), !text.utf8.starts(with: "device/".utf8) else {
      return false
    }
    return Tag.user(of: text) == nil || text.contains(" && ") || text.contains(" || ")
  }

  /// An expression that is too long is cut, and ends with an operator: what begins with one user's tag is not taken for
  /// that user.
  private static func bounded(expression: String) -> String {
    let text = bounded(expression)
    return text == expression ? text : String(text.unicodeScalars.dropLast(2)) + " || …"
  }

  /// A text cut to a sane length: whoever may write to the topic must not be able to fill a file with one record.
  package static func bounded(_ text: String) -> String {
    text.utf8.count <= 256 ? text : String(text.unicodeScalars.prefix(64))
  }
}
