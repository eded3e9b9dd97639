import FanfareCore

/// The condition of an `If-Match` field, compared weakly: clients write `"1"`, `W/"1"` or `1`.
struct IfMatch: Hashable {
  /// Nil: any.
  private let tags: [String]?

  /// Nil without a condition.
  init?(_ field: String?) {
    guard let field = field?.trimmingSpace, !field.isEmpty else { return nil }
    let texts = field.split(separator: ",").map { part in
      var text = part.trimmingSpace
      if text.hasPrefix("W/") { text.removeFirst(2) }
      return text.count >= 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
        ? String(text.dropFirst().dropLast()) : text
    }
    tags = texts.contains("*") ? nil : texts
  }

  /// The condition on the registration that a request changes.
  var condition: RegistrationCondition {
    { registration in tags?.contains(RegistrationEntry.tag(of: registration)) ?? true }
  }
}
