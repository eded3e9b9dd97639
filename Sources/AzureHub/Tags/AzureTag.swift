import FanfareCore
import FrontEnd

/// Translates tags: Azure's `$InstallationId:{x}` is `installation:x`, and `$UserId:{x}` is `username:x`. The braces
/// may be missing, as in some documentation.
enum AzureTag {
  private static let systemPrefixes = [
    ("$installationid:", Tag.installationPrefix), ("$userid:", Tag.usernamePrefix),
  ]

  /// A system tag as it is stored; nil for any other text.
  static func translated(_ text: some StringProtocol) -> String? {
    let lowered = text.lowercased()
    for (azure, own) in systemPrefixes where lowered.hasPrefix(azure) {
      let value = text.dropFirst(azure.count)
      return own + (value.hasPrefix("{") && value.hasSuffix("}") ? value.dropFirst().dropLast() : value)
    }
    return nil
  }

  /// The audience of an expression of tags with `&&`, `||`, `!` and parentheses. An empty one means everyone.
  static func audience(of expression: String) throws(Refusal) -> Audience {
    let text = try plain(expression)
    guard !text.allSatisfy(\.isWhitespace) else { return .everyone }
    let parsed: TagExpression
    do throws(TagExpressionError) { parsed = try TagExpression(text) } catch {
      throw Refusal(.invalidField, "the tag expression \(error)")
    }
    switch parsed {
    case .tag(let tag): return Tag.user(of: tag).map(Audience.user) ?? .tag(tag)
    case .any(let operands):
      let tags = operands.compactMap { if case .tag(let tag) = $0 { tag } else { nil } }
      return tags.count == operands.count ? Audience(anyOf: tags) : .expression(parsed)
    case .all, .not: return .expression(parsed)
    }
  }

  /// The expression with system tags as they are stored, in quotes.
  private static func plain(_ expression: String) throws(Refusal) -> String {
    guard expression.contains("$") else { return expression }
    var text = ""
    var rest = expression[...]
    while let start = rest.firstIndex(of: "$") {
      text += rest[..<start]
      rest = rest[start...]
      let colon = rest.firstIndex(of: ":") ?? rest.endIndex
      let value = rest[colon...].dropFirst()
      let end: Substring.Index
      if value.hasPrefix("{") {
        end = value.firstIndex(of: "}").map { rest.index(after: $0) } ?? rest.endIndex
      } else {
        end = value.firstIndex { $0.isWhitespace || "&|!()".contains($0) } ?? rest.endIndex
      }
      guard let tag = translated(rest[..<end]) else {
        throw Refusal(
          .invalidField, "the tag expression may have '$' only in $InstallationId:{…} and $UserId:{…}")
      }
      text += TagExpression.tag(tag).description
      rest = rest[end...]
    }
    return text + rest
  }
}
