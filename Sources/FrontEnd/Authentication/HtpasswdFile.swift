import FanfareCore
import FoundationEssentials

/// A parsed password file: lines of `user:hash`, blank lines, and comments that begin with `#`.
struct HtpasswdFile: Sendable {
  /// The most bytes of a file.
  static let maximumSize = 16 * 1024 * 1024

  /// By the bytes of the name: Unicode-equivalent names are different users.
  private let users: [[UInt8]: PasswordHash]
  /// Hashes for the passwords of unknown users; see `hash(of:)`.
  private let decoys: [PasswordHash]

  /// Whether the file has no users.
  var isEmpty: Bool { users.isEmpty }

  /// Parses a text. Throws with the number of the first invalid line, and nothing of its content.
  init(_ text: String) throws(FrontEndError) {
    var users: [[UInt8]: PasswordHash] = [:]
    var number = 0
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      number += 1
      guard let first = line.first(where: { !$0.isWhitespace }), first != "#" else { continue }
      func fail(_ problem: String) -> FrontEndError {
        FrontEndError(.htpasswd, "line \(number) of the password file \(problem)")
      }
      guard let colon = line.firstIndex(of: ":") else { throw fail("has no ':' between user name and hash") }
      let name = String(line[..<colon])
      guard UserName.isValid(name) else { throw fail("has an invalid user name: it must be \(UserName.rule)") }
      // Shadow files have further fields behind the hash.
      let hash = line[line.index(after: colon)...].prefix { $0 != ":" && !$0.isWhitespace }
      let valid: PasswordHash
      do throws(PasswordHash.Invalid) { valid = try PasswordHash(String(hash)) } catch { throw fail(error.reason) }
      guard users.updateValue(valid, forKey: Array(name.utf8)) == nil else {
        throw fail("repeats a user of an earlier line")
      }
    }
    self.users = users
    decoys = users.isEmpty ? [Self.decoyOfEmptyFile] : users.values.sorted { $0.text < $1.text }
  }

  /// Reads and parses a file. Throws if it cannot be read or is invalid.
  init(path: String) throws(FrontEndError) {
    let data: Data
    do {
      data = try Data(contentsOf: URL(filePath: path))
    } catch {
      throw FrontEndError(.htpasswd, "the password file \(path) cannot be read")
    }
    guard data.count <= Self.maximumSize else {
      throw FrontEndError(
        .htpasswd, "the password file \(path) has \(data.count) bytes; at most \(Self.maximumSize) are allowed")
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw FrontEndError(.htpasswd, "the password file \(path) is not UTF-8")
    }
    try self.init(text)
  }

  /// Returns the hash to check a user's password against, and whether the user exists.
  ///
  /// An unknown user always gets the hash of the same known user, so that timing does not reveal who has an account.
  func hash(of user: String) -> (hash: PasswordHash, isKnown: Bool) {
    if let hash = users[Array(user.utf8)] { return (hash, true) }
    var hasher = Hasher()
    hasher.combine(user)
    return (decoys[Int(UInt(bitPattern: hasher.finalize()) % UInt(decoys.count))], false)
  }

  /// A bcrypt hash of cost 12, today's usual cost, that belongs to no user.
  private static let decoyOfEmptyFile: PasswordHash = {
    do throws(PasswordHash.Invalid) {
      return try PasswordHash("$2y$12$vbrwRVbNKLOZeIVERbOKle5WFLaaCZ6F9Kx43Rd/HNL/h2iNa5OIO")
    } catch {
      // The constant is valid: only a libcrypt without bcrypt refuses it, and then no password can be checked.
      fatalError("libcrypt does not support bcrypt: \(error.reason)")
    }
  }()
}

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
