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
    guard !text.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
    var base64 = Data(
      text.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? UInt8(ascii: "/") : $0 })
    base64.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (4 - base64.count % 4) % 4))
    return Data(base64Encoded: base64).map { Array($0) }
  }
}
