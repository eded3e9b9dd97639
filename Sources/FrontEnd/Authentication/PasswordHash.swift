/// A password's hash as it stands in a password file, of one of the schemes that are still good for anything.
struct PasswordHash: Hashable, Sendable {
  /// The hash with its scheme, cost and salt, in the format of `crypt(5)`.
  let text: String

  /// Takes a hash. Throws the end of an error message, which contains nothing of the hash.
  init(_ text: String) throws(Unacceptable) {
    let schemes = ["$2y$", "$2b$", "$2a$", "$y$", "$6$"]
    guard schemes.contains(where: text.hasPrefix) else { throw Unacceptable(reason: Self.complaint(about: text)) }
    // A bare setting, without a hash behind it, would make every password wrong, and nobody would know why.
    guard Self.isWhole(text), Crypt.accepts(text) else {
      throw Unacceptable(reason: "has a hash that is cut short or malformed")
    }
    self.text = text
  }

  /// Whether it is the hash of the password. Blocks for as long as the scheme's cost demands; takes the same time
  /// whatever the answer.
  func matches(_ password: String) -> Bool {
    guard let hash = Crypt.hash(password, setting: text) else { return false }
    let expected = Array(text.utf8)
    var difference = UInt8(hash.count == expected.count ? 0 : 1)
    for (left, right) in zip(hash, expected) { difference |= left ^ right }
    return difference == 0
  }

  /// Why a hash is not taken, without anything of it.
  struct Unacceptable: Error {
    let reason: String
  }

  /// Whether there is a hash of the scheme's length (`crypt(5)`) behind the setting.
  private static func isWhole(_ text: String) -> Bool {
    // libcrypt notices a cost that bcrypt does not have only when it hashes.
    if text.hasPrefix("$2") { return text.utf8.count == 60 && (4...31).contains(Int(text.dropFirst(4).prefix(2)) ?? 0) }
    let isYescrypt = text.hasPrefix("$y$")
    let fields = text.utf8.split(separator: UInt8(ascii: "$"), omittingEmptySubsequences: false)
    return fields.count >= (isYescrypt ? 5 : 4) && fields.last?.count == (isYescrypt ? 43 : 86)
  }

  private static func complaint(about text: String) -> String {
    let scheme =
      if text.hasPrefix("$apr1$") || text.hasPrefix("$1$") { "an MD5 hash" } else if text.hasPrefix("{SHA}") {
        "an unsalted SHA-1 hash"
      } else if text.hasPrefix("$5$") { "a SHA-256 hash" } else if text.hasPrefix("$") {
        "a hash of a scheme that is not accepted"
      } else { "a DES hash or a plain password" }
    return "has \(scheme); bcrypt, yescrypt and SHA-512 ($6$) are accepted"
  }
}
