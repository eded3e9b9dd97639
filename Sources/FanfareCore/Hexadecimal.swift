/// Conversions of hexadecimal digits, for device tokens and identifiers.
package enum Hexadecimal {
  /// The value 0 to 15 of an ASCII hexadecimal digit of either case; nil for any other byte.
  package static func value(of byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The lower-case ASCII digit of a value from 0 to 15.
  package static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// The upper-case ASCII digit of a value from 0 to 15.
  static func upperDigit(_ value: UInt8) -> UInt8 { value < 10 ? digit(value) : digit(value) - 32 }

  /// The bytes as text, two lower-case digits each.
  package static func text(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 0xF)] }, as: UTF8.self)
  }

  /// The eight lower-case ASCII digits of a number, the first one in the most significant byte.
  ///
  /// Computed in parallel, because an identifier has 32 digits.
  static func digits(_ number: UInt32) -> UInt64 {
    // Spreads the digits' values, one per byte, by repeated halving.
    var values = UInt64(number)
    values = (values << 16 | values) & 0x0000_FFFF_0000_FFFF
    values = (values << 8 | values) & 0x00FF_00FF_00FF_00FF
    values = (values << 4 | values) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (values &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return values &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
  }
}
