/// A password hash of a password file: bcrypt, yescrypt or SHA-512.
struct PasswordHash: Hashable, Sendable {
  /// The hash with its scheme, cost and salt, in the format of `crypt(5)`.
  let text: String

  init(_ text: String) throws(Invalid) {
    let schemes = ["$2y$", "$2b$", "$2a$", "$y$", "$6$"]
    guard schemes.contains(where: text.hasPrefix) else { throw Invalid(reason: Self.schemeProblem(of: text)) }
    // A setting without a hash would make every password wrong without any explanation.
    guard Self.isWhole(text), Crypt.accepts(text) else {
      throw Invalid(reason: "has a hash that is cut short or malformed")
    }
    self.text = text
  }

  /// Returns whether this is the hash of the password.
  /// Blocks for the time of the scheme's cost; takes constant time for the comparison.
  func matches(_ password: String) -> Bool {
    guard let hash = Crypt.hash(password, setting: text) else { return false }
    let expected = Array(text.utf8)
    var difference = UInt8(hash.count == expected.count ? 0 : 1)
    for (left, right) in zip(hash, expected) { difference |= left ^ right }
    return difference == 0
  }

  /// Why a hash is refused: the end of an error message, without anything of the hash.
  struct Invalid: Error {
    let reason: String
  }

  /// Whether a hash of the scheme's length (`crypt(5)`) follows the setting.
  private static func isWhole(_ text: String) -> Bool {
    // libcrypt detects an invalid bcrypt cost only when it hashes.
    if text.hasPrefix("$2") { return text.utf8.count == 60 && (4...31).contains(Int(text.dropFirst(4).prefix(2)) ?? 0) }
    let isYescrypt = text.hasPrefix("$y$")
    let fields = text.utf8.split(separator: UInt8(ascii: "$"), omittingEmptySubsequences: false)
    return fields.count >= (isYescrypt ? 5 : 4) && fields.last?.count == (isYescrypt ? 43 : 86)
  }

  private static func schemeProblem(of text: String) -> String {
    let scheme =
      if text.hasPrefix("$apr1$") || text.hasPrefix("$1$") { "an MD5 hash" } else if text.hasPrefix("{SHA}") {
        "an unsalted SHA-1 hash"
      } else if text.hasPrefix("$5$") { "a SHA-256 hash" } else if text.hasPrefix("$") {
        "a hash of an unsupported scheme"
      } else { "a DES hash or a plain password" }
    return "has \(scheme); use bcrypt, yescrypt or SHA-512 ($6$)"
  }
}
