/// The name of a hub: an app with its own push credentials, registrations and callers.
/// Hubs are isolated from each other.
package struct HubName: Hashable, Sendable, CustomStringConvertible {
  /// The hub of a deployment that configures none.
  package static let `default` = Self(trusted: "default")
  /// The rule for names as stated in error messages.
  package static let rule = "1 to 64 characters of a–z, 0–9 and -, not beginning with -"

  package let rawValue: String

  /// Parses a name; nil when it violates `rule`.
  package init?(_ name: String) {
    let bytes = name.utf8Span.span
    guard (1...64).contains(bytes.count), bytes[0] != UInt8(ascii: "-") else { return nil }
    for index in bytes.indices {
      switch bytes[index] {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): continue
      default: return nil
      }
    }
    rawValue = name
  }

  private init(trusted name: String) {
    rawValue = name
  }

  package var description: String { rawValue }
}
