/// base64url without padding (RFC 4648 §5), as JSON Web Tokens are written in.
enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// Appends the encoded bytes.
  static func append(_ bytes: some Collection<UInt8>, to output: inout [UInt8]) {
    var bits: UInt32 = 0
    var count: UInt32 = 0
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      count += 8
      while count >= 6 {
        count -= 6
        output.append(alphabet[Int(bits >> count & 0x3F)])
      }
    }
    if count > 0 { output.append(alphabet[Int(bits << (6 - count) & 0x3F)]) }
  }
}
