import FanfareCore

extension JSONReader.Key {
  /// Whether it is the name in any letter case: the apps in the field spell their members as their platform likes.
  func matches(_ name: String) -> Bool {
    let other = name.utf8Span.span
    guard count == other.count else { return false }
    for index in indices where Self.lowercased(self[index]) != Self.lowercased(other[index]) { return false }
    return true
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
  }
}
