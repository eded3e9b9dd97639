import FanfareCore
import FoundationEssentials

/// What a caller presents to prove who it is. Its description contains no part of it.
package enum Credentials: Hashable, Sendable, CustomStringConvertible {
  case basic(BasicCredentials)
  /// A bearer token (RFC 6750): a JWT or an API key, 1 to `maximumTokenLength` characters of its alphabet.
  case bearer(String)
  /// The certificate of a TLS client, which the listener has verified.
  case certificate(ClientCertificate)
  /// A signature of the request's URL, which only routes of another protocol accept.
  case signature(URLSignature)

  /// The most bytes of a bearer token.
  package static let maximumTokenLength = 8192

  /// Parses an `Authorization` field.
  /// Returns nil for another scheme, and for malformed credentials.
  package init?(_ authorization: String) {
    if let basic = BasicCredentials(authorization) {
      self = .basic(basic)
    } else if let token = Self.token(in: authorization) {
      self = .bearer(token)
    } else {
      return nil
    }
  }

  package var description: String {
    switch self {
    case .basic: "Basic credentials"
    case .bearer: "bearer token"
    case .certificate: "client certificate"
    case .signature: "URL signature"
    }
  }

  /// The token of a field with the scheme `Bearer`; nil for another scheme and for other than token68 (RFC 9110 §11.2).
  private static func token(in authorization: String) -> String? {
    let bytes = authorization.utf8
    guard bytes.count > 7, bytes.prefix(7).map({ $0 | 0x20 }).elementsEqual("bearer ".utf8) else { return nil }
    let token = bytes.dropFirst(7).drop { $0 == UInt8(ascii: " ") }
    guard (1...maximumTokenLength).contains(token.count), token.allSatisfy(isTokenCharacter) else { return nil }
    return String(Substring(token))
  }

  private static func isTokenCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
      true
    default: false
    }
  }
}

/// The user name and password of HTTP Basic authentication (RFC 7617).
/// Its description contains neither.
package struct BasicCredentials: Hashable, Sendable, CustomStringConvertible {
  /// The most bytes of a password: the limit of `crypt(3)`.
  package static let maximumPasswordLength = 511

  /// The challenge that asks for them. The charset tells clients how to encode names that are not ASCII (RFC 7617
  /// §2.1).
  package static let challenge = #"Basic realm="fanfare", charset="UTF-8""#

  /// A valid user name (`UserName.isValid`).
  package let user: String
  /// UTF-8 without NUL, at most `maximumPasswordLength` bytes.
  package let password: String

  /// Returns nil if the name or the password is invalid.
  package init?(user: String, password: String) {
    guard UserName.isValid(user), password.utf8.count <= Self.maximumPasswordLength, !password.utf8.contains(0) else {
      return nil
    }
    self.user = user
    self.password = password
  }

  /// Parses an `Authorization` field.
  /// Returns nil for another scheme, and for anything but base64 of UTF-8 with a colon.
  package init?(_ authorization: String) {
    // On bytes: every request is parsed here, and characters cost ten times as much.
    let bytes = authorization.utf8
    guard bytes.count > 6, bytes.prefix(6).map({ $0 | 0x20 }).elementsEqual("basic ".utf8),
      let data = Data(base64Encoded: Data(bytes.dropFirst(6).filter { $0 != UInt8(ascii: " ") })),
      let colon = data.firstIndex(of: UInt8(ascii: ":")), let user = String(validating: data[..<colon], as: UTF8.self),
      let password = String(validating: data[data.index(after: colon)...], as: UTF8.self)
    else { return nil }
    self.init(user: user, password: password)
  }

  package var description: String { "Basic credentials" }
}

/// The certificate of a TLS client. Its description contains no part of it.
package struct ClientCertificate: Hashable, Sendable, CustomStringConvertible {
  /// The leaf certificate in DER. The listener has verified its chain, and that the client has its key.
  package let der: [UInt8]

  package init(der: [UInt8]) { self.der = der }

  package var description: String { "client certificate" }
}

/// A token that signs the URL of the request, or the beginning of it. Its description contains no part of it.
package struct URLSignature: Hashable, Sendable, CustomStringConvertible {
  /// The token in the form of its protocol.
  package let token: String
  /// Host and port to which the request goes, and its path as it was sent.
  package let host: String
  package let path: String

  package init(token: String, host: String, path: String) {
    (self.token, self.host, self.path) = (token, host, path)
  }

  package var description: String { "URL signature" }
}
