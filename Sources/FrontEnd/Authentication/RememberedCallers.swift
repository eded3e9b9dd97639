import Crypto
import FanfareCore

/// A caller that a request on a connection was authenticated as, and the fields that decided it.
struct RememberedCaller: Sendable {
  /// The digest of the value of `Authorization`; nil if the connection's certificate was the credentials.
  let credentials: CredentialsDigest?
  /// The value of `X-Forwarded-For`; nil unless the peer is a trusted proxy, whose word decides where a request is
  /// from.
  let forwardedFor: String?
  let caller: Caller
  /// See `LoginGuard.Admission.login`.
  let login: Int?
  let validity: Validity

  fileprivate func isFrom(_ forwardedFor: String?, _ hub: HubName) -> Bool {
    guard caller.hub.name == hub else { return false }
    guard let own = self.forwardedFor, let forwardedFor else { return self.forwardedFor == nil && forwardedFor == nil }
    // By bytes: `==` of strings is about Unicode equivalence.
    return own.utf8.count == forwardedFor.utf8.count && own.utf8.elementsEqual(forwardedFor.utf8)
  }
}

/// A digest of credentials that tells nothing of them.
///
/// A SHA-256 hash of a key that never leaves the process and the text. An HMAC would cost twice as much for every
/// request, and is not needed: digests are compared in constant time and never shown, so that length extension is no
/// threat.
struct CredentialsDigest: Hashable, Sendable {
  /// Has taken in the secret, which is as long as a block of the hash, so that it is hashed once.
  private static let keyed: SHA256 = {
    var hash = SHA256()
    // The system's generator is cryptographically secure.
    hash.update(data: (0..<64).map { _ in UInt8.random(in: .min ... .max) })
    return hash
  }()

  private let digest: SHA256Digest

  /// Digests the bytes of a field's value.
  init(_ bytes: [UInt8]) {
    var hash = Self.keyed
    hash.update(data: bytes)
    digest = hash.finalize()
  }
}

/// The callers that were authenticated on a connection last. A proxy's connection has several.
struct RememberedCallers {
  private static let capacity = 8

  private var entries: [RememberedCaller] = []
  /// The entry that the next one replaces.
  private var oldest = 0

  /// Remembers a caller instead of an earlier one with the same fields, or instead of the oldest one.
  mutating func add(_ entry: RememberedCaller) {
    if let index = index(of: entry.credentials, entry.forwardedFor, entry.caller.hub.name) {
      entries[index] = entry
    } else if entries.count < Self.capacity {
      entries.append(entry)
    } else {
      entries[oldest] = entry
      oldest = (oldest + 1) % Self.capacity
    }
  }

  func find(_ authorization: [UInt8]?, _ forwardedFor: String?, _ hub: HubName) -> RememberedCaller? {
    // Strangers' requests cost no digest.
    guard entries.contains(where: { $0.isFrom(forwardedFor, hub) }) else { return nil }
    return index(of: authorization.map(CredentialsDigest.init), forwardedFor, hub).map { entries[$0] }
  }

  private func index(of credentials: CredentialsDigest?, _ forwardedFor: String?, _ hub: HubName) -> Int? {
    entries.firstIndex { $0.isFrom(forwardedFor, hub) && $0.credentials == credentials }
  }
}
