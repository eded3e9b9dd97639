import FanfareCore

/// The rules for API keys that every store keeps, and the texts under which their parts are stored.
extension StoredAPIKey {
  /// Whether every text can be stored and read again unchanged.
  var isStorable: Bool {
    id.isStorable && user.isStorable && comment.isStorable && comment.utf8.count <= Self.maximumCommentLength
      && scopes.allSatisfy { $0.isStorable && !$0.isEmpty && !$0.contains(" ") }
  }

  /// The scopes as they are stored.
  var scopeText: String { scopes.joined(separator: " ") }

  /// The scopes of a stored text.
  static func scopes(in text: String) -> [String] { text.split(separator: " ").map(String.init) }

  static let tooMany = RegistryError(
    .conflict, "the hub has \(maximumCount) API keys, the most allowed; revoke those that are not used")
  static let exists = RegistryError(.conflict, "an API key with this id exists")
}
