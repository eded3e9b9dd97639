import FanfareCore
import FoundationEssentials

/// A user name and a password as HTTP Basic carries them (RFC 7617). Its description contains neither.
package struct BasicCredentials: Hashable, Sendable, CustomStringConvertible {
  /// The most bytes of a password: what `crypt(3)` takes at most.
  package static let maximumPasswordLength = 511

  /// A sound user name (`UserName.isSound`).
  package let user: String
  /// UTF-8 without NUL, of at most `maximumPasswordLength` bytes.
  package let password: String

  /// Takes a name and a password; nil when either cannot be one.
  package init?(user: String, password: String) {
    guard UserName.isSound(user), password.utf8.count <= Self.maximumPasswordLength, !password.utf8.contains(0) else {
      return nil
    }
    self.user = user
    self.password = password
  }

  /// Reads the value of an `Authorization` field; nil for another scheme, and for what is not base64 of UTF-8 with a colon.
  package init?(_ authorization: String) {
    let scheme = authorization.prefix(6)
    guard scheme.utf8.count == 6, scheme.lowercased() == "basic ",
      let data = Data(base64Encoded: String(authorization.dropFirst(6)).trimmed),
      let text = String(validating: data, as: UTF8.self), let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
    else { return nil }
    self.init(user: String(text[..<colon]), password: String(text[text.utf8.index(after: colon)...]))
  }

  package var description: String { "Basic credentials" }
}

extension String {
  fileprivate var trimmed: String {
    String(trimmingPrefix { $0 == " " }.reversed().trimmingPrefix { $0 == " " }.reversed())
  }
}
