import Crypto
import FanfareCore

/// An API key as its owner sends it: `fanfare_`, 12 characters of id, 43 of secret and 6 of checksum.
///
/// The prefix lets scanners find keys in published files. The checksum lets the front end refuse a mistyped key without
/// a query. All characters after the prefix are letters and digits, so that a double click selects the whole key.
/// The description contains only the id.
package struct APIKey: Sendable, CustomStringConvertible {
  package static let prefix = "fanfare_"
  /// A regular expression for keys, for scanners.
  package static let pattern = "fanfare_[0-9A-Za-z]{61}"

  private static let idLength = 12
  /// 43 of 62 characters have 256 bits.
  private static let secretLength = 43
  private static let checksumLength = 6
  private static let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

  /// Names the key in lists and commands.
  package let id: String
  private let secret: ArraySlice<UInt8>

  /// The text that the owner sends. Show it once, and never store it.
  package var text: String {
    let body = Self.prefix + id + String(decoding: secret, as: UTF8.self)
    return body + String(decoding: Self.checksum(of: Array(body.utf8)), as: UTF8.self)
  }

  /// The digest that is stored: SHA-256 of the secret, which is too random to be guessed.
  package var digest: [UInt8] { Array(SHA256.hash(data: Array(secret))) }

  package var description: String { "API key \(id)" }

  /// Makes a key from the system's generator.
  package init() {
    func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in Self.digits[Int.random(in: 0..<Self.digits.count)] } }
    id = String(decoding: random(Self.idLength), as: UTF8.self)
    secret = random(Self.secretLength)[...]
  }

  /// Reads a key. Nil if the text is not one, or its checksum is wrong.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    let start = Self.prefix.utf8.count
    let end = start + Self.idLength + Self.secretLength
    guard bytes.count == end + Self.checksumLength, bytes.starts(with: Self.prefix.utf8),
      bytes[start...].allSatisfy(Self.isDigit), bytes[end...].elementsEqual(Self.checksum(of: bytes[..<end]))
    else { return nil }
    id = String(decoding: bytes[start..<(start + Self.idLength)], as: UTF8.self)
    secret = bytes[(start + Self.idLength)..<end]
  }

  /// Reads an id, which may have the prefix. Nil if the text is not one.
  package static func id(_ text: String) -> String? {
    let id = text.hasPrefix(prefix) ? text.dropFirst(prefix.count) : text[...]
    return id.utf8.count == idLength && id.utf8.allSatisfy(isDigit) ? String(id) : nil
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }

  /// CRC-32 (as in zip files) in base 62.
  private static func checksum(of bytes: some Sequence<UInt8>) -> [UInt8] {
    var crc: UInt32 = .max
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    var rest = Int(~crc)
    var text: [UInt8] = []
    for _ in 0..<checksumLength {
      text.append(digits[rest % digits.count])
      rest /= digits.count
    }
    return text.reversed()
  }
}
