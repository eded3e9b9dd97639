import FanfareCore

extension JSONReader.Key {
  /// Whether it is the name in any letter case: the apps in the field spell their members as their platform likes.
  func matches(_ name: String) -> Bool {
    utf8.count == name.utf8.count
      && zip(utf8, name.utf8).allSatisfy { left, right in Self.lowercased(left) == Self.lowercased(right) }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
  }
}
