import FanfareCore
import FoundationEssentials

/// A JSON Web Token in compact form, parsed but not verified (RFC 7515 §3.1).
struct CompactToken {
  /// Header parameters whose values are strings.
  let header: [String: String]
  /// The claims that both vendors' tokens use.
  let claims: Claims
  /// The bytes that are signed.
  let signedBytes: [UInt8]
  let signature: [UInt8]

  /// The claims in use; others are skipped.
  struct Claims {
    var issuer: String?
    var audience: String?
    var scope: String?
    var issuedAt: Int64?
    var expiresAt: Int64?
  }

  /// Nil unless the text has three parts of unpadded base64url, the first two of which are JSON objects.
  init?(_ text: some Collection<UInt8>) {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let headerBytes = Self.decodeBase64URL(parts[0]),
      let claimBytes = Self.decodeBase64URL(parts[1]),
      let signature = Self.decodeBase64URL(parts[2])
    else { return nil }
    do {
      header = try Self.readHeader(headerBytes)
      claims = try Self.readClaims(claimBytes)
    } catch {
      return nil
    }
    self.signature = signature
    signedBytes = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
  }

  private static func readHeader(_ bytes: [UInt8]) throws(JSONError) -> [String: String] {
    var header: [String: String] = [:]
    var reader = try JSONReader(bytes[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .string { header[key.text] = try reader.readString() } else { try reader.skipValue() }
    }
    try reader.finish()
    return header
  }

  private static func readClaims(_ bytes: [UInt8]) throws(JSONError) -> Claims {
    var claims = Claims()
    var reader = try JSONReader(bytes[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "iss": claims.issuer = try reader.readString()
      case "aud": claims.audience = try reader.readString()
      case "scope": claims.scope = try reader.readString()
      case "iat": claims.issuedAt = try reader.readInteger()
      case "exp": claims.expiresAt = try reader.readInteger()
      default: try reader.skipValue()
      }
    }
    try reader.finish()
    return claims
  }

  /// Decodes base64url without padding (RFC 4648 §5, RFC 7515 §2); nil for anything else.
  static func decodeBase64URL(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    for byte in text {
      let value: UInt8
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = byte - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = byte - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = byte - UInt8(ascii: "0") + 52
      case UInt8(ascii: "-"): value = 62
      case UInt8(ascii: "_"): value = 63
      default: return nil
      }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    // A single character left over cannot be a byte.
    return count == 6 ? nil : bytes
  }
}
