import FanfareCore

/// A file that holds a secret: a password, a private key, a token.
///
/// It is read at the start, and again when its contents may have changed. A file that others may read is refused, so
/// that a secret is not exposed to other users of the machine without notice:
/// - It must belong to the user of the process or to root.
/// - Others must not have any permission. The group may read a file of root: `root:fanfare 0640`.
/// - A file of root on a read-only mount may have any permissions to read, as the secrets that container platforms
///   mount have. Who else can see the mount is the platform's decision.
///
/// `secrets.allowReadable` turns the check off.
package struct SecretFile: Sendable {
  /// The key that names the file.
  package let key: String
  package let path: String
  /// Whether others may read it.
  let isExemptFromCheck: Bool

  fileprivate struct Keys: Sendable {
    @Setting(
      "whether files with passwords and private keys may be readable by other users of the machine; mounted secrets of "
        + "container platforms (read-only, owned by root) need no exception")
    var allowReadable = false
  }

  fileprivate static let keys = SettingsSection("secrets", Keys())
  package static var declaration: SettingsDeclaration { keys.declaration }

  /// The text without line ends at its end.
  ///
  /// Throws if the file cannot be read, or if others may read it.
  package func text() throws(SettingsError) -> String {
    let text = try SettingsReader.contents(of: path, key: key)
    if !isExemptFromCheck, let access = FileAccess(path: path),
      let problem = Self.problem(with: access, user: FileAccess.user)
    {
      throw SettingsError(
        key,
        "names a file that is not safe: \(path): \(problem); or set secrets.allowReadable if others may know the secret"
      )
    }
    return text.trimmingSuffix { $0.isNewline }
  }

  /// The bytes of a text of such a length. Throws if the file cannot be read, or if others may read it.
  package func bytes(_ range: ClosedRange<Int>) throws(SettingsError) -> [UInt8] {
    let bytes = Array(try text().utf8)
    guard range.contains(bytes.count) else {
      throw SettingsError(key, "must name a file with \(range.lowerBound) to \(range.upperBound) bytes of secret text")
    }
    return bytes
  }

  /// The reason why a file with these permissions is refused, and the remedy; nil if it is safe.
  package static func problem(with access: FileAccess, user: UInt32) -> String? {
    guard access.owner == user || access.owner == 0 else {
      return "it belongs to another user (\(access.owner)); make it the role's own with chown"
    }
    if access.owner == 0, access.isReadOnlyMount { return nil }
    // The owner's own group is often shared with other users; root grants a group on purpose.
    let forbidden: UInt32 = access.owner == 0 ? 0o037 : 0o077
    guard access.mode & forbidden != 0 else { return nil }
    let mode = String(access.mode, radix: 8)
    return "others may use it (mode \(String(repeating: "0", count: max(0, 4 - mode.count)))\(mode)); chmod 600 it"
  }
}

/// A file with secrets that is not part of the configuration.
package enum PrivateFile {
  /// The reason why the file is refused, and the remedy; nil if it is safe, or cannot be read at all.
  package static func problem(at path: String) -> String? {
    FileAccess(path: path).flatMap { SecretFile.problem(with: $0, user: FileAccess.user) }
  }
}

extension SettingsReader {
  /// The file of a secret that a key names; nil if the key is absent. Every secret of the configuration comes this way.
  func secretFile(at key: String) throws(SettingsError) -> SecretFile? {
    let isExempt = try read(SecretFile.keys).allowReadable
    guard let path = try string(key) else { return nil }
    return SecretFile(key: key, path: path, isExemptFromCheck: isExempt)
  }
}

extension String {
  /// The text without the characters at its end that satisfy the condition.
  package func trimmingSuffix(while condition: (Character) -> Bool) -> String {
    var rest = self[...]
    while let last = rest.last, condition(last) { rest.removeLast() }
    return String(rest)
  }
}
