/// Base64 without padding (RFC 4648), appended to bytes.
enum Base64 {
  /// Which characters stand for 62 and 63.
  enum Alphabet {
    /// `+` and `/`.
    case standard
    /// `-` and `_`, as JSON Web Tokens are written in.
    case url
  }

  private static let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// Appends the encoded bytes.
  static func append(_ bytes: some Collection<UInt8>, alphabet: Alphabet, to output: inout [UInt8]) {
    var bits: UInt32 = 0
    var count: UInt32 = 0
    func append(_ value: UInt32) {
      switch value {
      case 62: output.append(alphabet == .url ? UInt8(ascii: "-") : UInt8(ascii: "+"))
      case 63: output.append(alphabet == .url ? UInt8(ascii: "_") : UInt8(ascii: "/"))
      default: output.append(characters[Int(value)])
      }
    }
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      count += 8
      while count >= 6 {
        count -= 6
        append(bits >> count & 0x3F)
      }
    }
    if count > 0 { append(bits << (6 - count) & 0x3F) }
  }
}
