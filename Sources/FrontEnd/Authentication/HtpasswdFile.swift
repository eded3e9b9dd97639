import FanfareCore
import FoundationEssentials

/// The content of a password file: lines of `user:hash`, blank lines and comments that begin with `#`.
struct HtpasswdFile: Sendable {
  /// The most bytes of a file.
  static let maximumSize = 16 * 1024 * 1024

  /// By the names' bytes: two names that merely look the same are two users, as everywhere.
  private let users: [[UInt8]: PasswordHash]
  /// What an unknown user's password is checked against.
  private let decoys: [PasswordHash]

  /// Whether it names nobody.
  var isEmpty: Bool { users.isEmpty }

  /// Reads a file's text. Throws at the first line that is not acceptable, with its number and nothing of its content.
  init(_ text: String) throws(FrontEndError) {
    var users: [[UInt8]: PasswordHash] = [:]
    var number = 0
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      number += 1
      guard let first = line.first(where: { !$0.isWhitespace }), first != "#" else { continue }
      func fail(_ problem: String) -> FrontEndError {
        FrontEndError(.htpasswd, "line \(number) of the password file \(problem)")
      }
      guard let colon = line.firstIndex(of: ":") else { throw fail("has no ':'") }
      let name = String(line[..<colon])
      guard UserName.isValid(name) else { throw fail("has an unusable user name: it must be \(UserName.rule)") }
      // `htpasswd` writes nothing behind the hash; shadow files have further fields.
      let hash = line[line.index(after: colon)...].prefix { $0 != ":" && !$0.isWhitespace }
      do {
        guard users.updateValue(try PasswordHash(String(hash)), forKey: Array(name.utf8)) == nil else {
          throw fail("names a user for the second time")
        }
      } catch let error as PasswordHash.Unacceptable {
        throw fail(error.reason)
      } catch let error as FrontEndError {
        throw error
      } catch {
        throw fail("cannot be used")
      }
    }
    self.users = users
    decoys = users.isEmpty ? [Self.decoyOfAnEmptyFile] : users.values.sorted { $0.text < $1.text }
  }

  /// Reads the file at a path. Throws when it cannot be read or is not acceptable.
  init(path: String) throws(FrontEndError) {
    let data: Data
    do {
      data = try Data(contentsOf: URL(filePath: path))
    } catch {
      throw FrontEndError(.htpasswd, "the password file \(path) cannot be read")
    }
    guard data.count <= Self.maximumSize else {
      throw FrontEndError(.htpasswd, "the password file \(path) has more than \(Self.maximumSize) bytes")
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw FrontEndError(.htpasswd, "the password file \(path) is not UTF-8")
    }
    try self.init(text)
  }

  /// What to check a user's password against, and whether the user exists at all. An unknown user gets the hash of some
  /// known one, always the same, so that neither the time nor its spread tells who has an account.
  func hash(of user: String) -> (hash: PasswordHash, isKnown: Bool) {
    if let hash = users[Array(user.utf8)] { return (hash, true) }
    var hasher = Hasher()
    hasher.combine(user)
    return (decoys[Int(UInt(bitPattern: hasher.finalize()) % UInt(decoys.count))], false)
  }

  /// A bcrypt hash of cost 12 that nobody is known by: `htpasswd -B`'s scheme at today's usual cost.
  private static let decoyOfAnEmptyFile: PasswordHash = {
    do throws(PasswordHash.Unacceptable) {
      return try PasswordHash("$2y$12$vbrwRVbNKLOZeIVERbOKle5WFLaaCZ6F9Kx43Rd/HNL/h2iNa5OIO")
    } catch {
      // The text is a constant: only a libcrypt without bcrypt refuses it, and with that no password could be checked.
      fatalError("libcrypt does not know bcrypt: \(error.reason)")
    }
  }()
}
