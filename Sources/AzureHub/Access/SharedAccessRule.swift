import FanfareCore
package import FrontEnd

/// A right of a shared access rule.
package enum SharedAccessRight: String, CaseIterable, Sendable {
  /// Register, read and remove devices of all users.
  case listen = "Listen"
  /// Send, and read the outcomes of sends.
  case send = "Send"
  /// Everything else: lists of all registrations, jobs, feedback, the hub's description. Includes the other rights.
  case manage = "Manage"

  /// The scopes of a caller with the right.
  var scopes: Set<Scope> {
    switch self {
    case .listen: [.device]
    case .send: Set(Scope.sending + [.sendNative])
    case .manage: Set(Scope.allCases)
    }
  }

  /// Whether a caller has the right.
  func isGranted(to caller: Caller) -> Bool { scopes.isSubset(of: caller.scopes) }
}

/// A named pair of keys with the rights of their owners.
package struct SharedAccessRule: Hashable, Sendable {
  package let name: String
  package let rights: Set<SharedAccessRight>
  /// The primary and, if there is one, the secondary key. Keys are texts: their bytes sign, even if they look like
  /// base64.
  package let keys: [String]

  var scopes: Set<Scope> { rights.reduce(into: []) { $0.formUnion($1.scopes) } }
}

/// The rules of a hub, or of all hubs: lines of `NAME RIGHTS PRIMARY-KEY [SECONDARY-KEY]`, such as
/// `DefaultListenSharedAccessSignature Listen k1 k2` or `DefaultFullSharedAccessSignature Listen,Send,Manage k3`; blank
/// lines, and comments that begin with `#`.
package struct SharedAccessRules: Hashable, Sendable {
  /// The most rules.
  package static let maximumCount = 100
  /// The most characters of a rule's name.
  package static let maximumNameLength = 64

  package let rules: [SharedAccessRule]

  package init(_ rules: [SharedAccessRule]) { self.rules = rules }

  /// Parses a text. Throws with the number of the first invalid line, and nothing of its content.
  package init(parsing text: String) throws(FrontEndError) {
    var rules: [SharedAccessRule] = []
    var number = 0
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      number += 1
      let words = line.split(whereSeparator: \.isWhitespace)
      guard let name = words.first, !name.hasPrefix("#") else { continue }
      func fail(_ problem: String) -> FrontEndError {
        FrontEndError(.configuration, "line \(number) of the shared access rules \(problem)")
      }
      guard (3...4).contains(words.count) else { throw fail("must be a name, rights and one or two keys") }
      guard (1...Self.maximumNameLength).contains(name.utf8.count),
        name.utf8.allSatisfy({ $0.isLetterOrDigit || "-_.".utf8.contains($0) })
      else { throw fail("must begin with a name of 1 to \(Self.maximumNameLength) letters, digits, '-', '_' and '.'") }
      guard !rules.contains(where: { $0.name == name }) else { throw fail("repeats the name of a rule before it") }
      var rights: Set<SharedAccessRight> = []
      for word in words[1].split(separator: ",") {
        guard let right = SharedAccessRight.allCases.first(where: { $0.rawValue.lowercased() == word.lowercased() })
        else { throw fail("must have rights of Listen, Send and Manage, separated by commas") }
        rights.insert(right)
      }
      let keys = words[2...].map(String.init)
      guard keys.allSatisfy({ (16...256).contains($0.utf8.count) }) else {
        throw fail("must have keys of 16 to 256 characters")
      }
      rules.append(SharedAccessRule(name: String(name), rights: rights, keys: keys))
      guard rules.count <= Self.maximumCount else {
        throw fail("is one rule more than the \(Self.maximumCount) allowed")
      }
    }
    self.init(rules)
  }
}
