import FanfareCore
import FoundationEssentials

/// A user name and a password as HTTP Basic carries them (RFC 7617). Its description contains neither.
package struct BasicCredentials: Hashable, Sendable, CustomStringConvertible {
  /// The most bytes of a password: what `crypt(3)` takes at most.
  package static let maximumPasswordLength = 511

  /// A sound user name (`UserName.isValid`).
  package let user: String
  /// UTF-8 without NUL, of at most `maximumPasswordLength` bytes.
  package let password: String

  /// Takes a name and a password; nil when either cannot be one.
  package init?(user: String, password: String) {
    guard UserName.isValid(user), password.utf8.count <= Self.maximumPasswordLength, !password.utf8.contains(0) else {
      return nil
    }
    self.user = user
    self.password = password
  }

  /// Reads the value of an `Authorization` field; nil for another scheme, and for what is not base64 of UTF-8 with a
  /// colon.
  package init?(_ authorization: String) {
    // On bytes: every request comes through here, and characters cost ten times as much.
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
