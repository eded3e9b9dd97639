import FanfareCore
import FoundationEssentials

/// A signed token in compact form (RFC 7515 §7.1), taken apart but not verified.
struct JSONWebToken: Sendable {
  /// The most bytes of a token.
  static let maximumSize = 8 * 1024

  /// The name of the algorithm in the header. It only selects among the algorithms of the configuration.
  let algorithm: String
  /// The id of the key that the header names.
  let keyID: String?
  /// The bytes that the signature covers: both first parts and the dot between them.
  let signedBytes: ArraySlice<UInt8>
  let signature: [UInt8]
  /// The payload: a JSON object.
  let payload: [UInt8]

  /// Throws `.malformed` unless the text has three parts of unpadded base64url, the first one a header that names an
  /// algorithm and demands nothing else (`crit`, RFC 7515 §4.1.11).
  init(_ text: String) throws(TokenRefusal) {
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.maximumSize else { throw .malformed }
    let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.decode(parts[0]), let payload = Self.decode(parts[1]),
      let signature = Self.decode(parts[2])
    else { throw .malformed }
    let members = try TokenClaims(header)
    guard case .text(let algorithm) = members["alg"], members["crit"] == nil else { throw .malformed }
    switch members["kid"] {
    case nil: keyID = nil
    case .text(let id): keyID = id
    default: throw .malformed
    }
    self.algorithm = algorithm
    self.payload = payload
    self.signature = signature
    signedBytes = bytes[..<parts[1].endIndex]
  }

  /// Decodes base64url without padding (RFC 7515 §2); nil for anything else.
  private static func decode(_ part: ArraySlice<UInt8>) -> [UInt8]? {
    guard !part.isEmpty, part.count % 4 != 1 else { return nil }
    var base64 = Data(capacity: part.count + 3)
    for byte in part {
      switch byte {
      case UInt8(ascii: "-"): base64.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): base64.append(UInt8(ascii: "/"))
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      default: base64.append(byte)
      }
    }
    while base64.count % 4 != 0 { base64.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: base64).map { Array($0) }
  }
}

/// Why a token is refused. Shown to operators as a metric's label; callers learn only that the token is invalid.
package enum TokenRefusal: String, Error, CaseIterable {
  /// Not a signed token, or larger than 8 KiB.
  case malformed
  /// Signed with an algorithm that the configuration does not allow.
  case algorithm
  /// The keys contain no key of this id for this algorithm.
  case unknownKey
  case signature
  case issuer
  case audience
  case expired
  case notYetValid
  /// The claim of the user is missing, or is not a valid user name.
  case user
  /// The token is for another hub.
  case hub
}
