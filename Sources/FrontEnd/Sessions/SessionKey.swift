import Crypto
import FanfareCore
import FoundationEssentials

/// Seals and opens sessions: credentials that a browser keeps in a cookie without being able to read them.
///
/// The server keeps nothing. A session contains the credentials that it was opened with, and each request with it is
/// authenticated by them, as by an `Authorization` field: a revoked key, a changed password or scope, and the limits of
/// failed logins count at once. Front ends with the same key accept each other's sessions.
package struct SessionKey: Sendable {
  /// The time without a request after which a session ends.
  package let idleTime: Duration
  /// The time after which a session ends whatever its use.
  package static let longestTime = Duration.seconds(12 * 3600)
  /// The most characters of a sealed session.
  static let maximumLength = 4096

  private let sealing: SymmetricKey
  private let checking: SymmetricKey
  /// Signs URLs.
  private let signing: SymmetricKey

  /// Derives the keys from a secret of at least 32 bytes; nil: a random one, so that sessions end with this process.
  package init(secret: [UInt8]? = nil, idleTime: Duration = .seconds(1800)) {
    let secret = secret.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
    func derived(_ purpose: String) -> SymmetricKey {
      HKDF<SHA256>.deriveKey(inputKeyMaterial: secret, info: Array(purpose.utf8), outputByteCount: 32)
    }
    sealing = derived("fanfare session")
    checking = derived("fanfare csrf")
    signing = derived("fanfare url")
    self.idleTime = idleTime
  }

  /// The content of a cookie.
  private struct Content: Codable {
    let id: String
    let hub: String
    /// `basic` or `bearer`.
    let kind: String
    let user: String?
    let secret: String
    let openedAt: Int64
    let renewedAt: Int64
  }

  /// A session that a request came with.
  struct Session: Sendable {
    let credentials: Credentials
    let hub: HubName
    let id: String
    let openedAt: UnixTime
    let renewedAt: UnixTime
  }

  /// Makes a session of credentials, which must be a password or a token.
  func open(_ credentials: Credentials, hub: HubName, at now: UnixTime) -> Session {
    Session(
      credentials: credentials, hub: hub, id: Hexadecimal.text(RegistrationID.random().bytes), openedAt: now,
      renewedAt: now)
  }

  /// Returns the text of a session's cookie, as used last at `now`.
  func seal(_ session: Session, at now: UnixTime) throws -> String {
    let (kind, user, secret): (String, String?, String)
    switch session.credentials {
    case .basic(let basic): (kind, user, secret) = ("basic", basic.user, basic.password)
    case .bearer(let token): (kind, user, secret) = ("bearer", nil, token)
    case .certificate, .signature: throw Refusal(.impossible, "a session needs a password or a key")
    }
    let content = Content(
      id: session.id, hub: session.hub.rawValue, kind: kind, user: user, secret: secret,
      openedAt: session.openedAt.milliseconds, renewedAt: now.milliseconds)
    let box = try AES.GCM.seal(try JSONEncoder().encode(content), using: sealing)
    // With the standard nonce of twelve bytes there always is a combined form.
    guard let combined = box.combined else { throw Refusal(.internalError, "the session cannot be sealed") }
    let text = combined.base64EncodedString().filter { $0 != "=" }
    guard text.utf8.count <= Self.maximumLength else {
      throw Refusal(.impossible, "the credentials are too long for a session")
    }
    return String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
  }

  /// Opens the text of a cookie. Returns nil if it is not one of this key's, or if the session has ended.
  func unseal(_ text: String, at now: UnixTime) -> Session? {
    guard text.utf8.count <= Self.maximumLength else { return nil }
    var base64 = String(text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
    base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
    // Whatever is wrong with a cookie, the answer is the same: log in.
    guard let data = Data(base64Encoded: base64), let box = try? AES.GCM.SealedBox(combined: data),
      let plain = try? AES.GCM.open(box, using: sealing),
      let content = try? JSONDecoder().decode(Content.self, from: plain), let hub = HubName(content.hub)
    else { return nil }
    let (opened, renewed) = (
      UnixTime(milliseconds: content.openedAt), UnixTime(milliseconds: content.renewedAt)
    )
    guard now - renewed < idleTime, now - opened < Self.longestTime else { return nil }
    let credentials: Credentials
    switch (content.kind, content.user) {
    case ("basic", let user?):
      guard let basic = BasicCredentials(user: user, password: content.secret) else { return nil }
      credentials = .basic(basic)
    case ("bearer", _): credentials = .bearer(content.secret)
    default: return nil
    }
    return Session(credentials: credentials, hub: hub, id: content.id, openedAt: opened, renewedAt: renewed)
  }

  /// The token that requests which change something must repeat in a header field. A page of another site can make a
  /// browser send the cookie, but not this.
  func token(of session: Session) -> String {
    Hexadecimal.text(HMAC<SHA256>.authenticationCode(for: Array(session.id.utf8), using: checking))
  }

  /// The signature of a URL.
  func signature(ofURL text: String) -> String {
    Hexadecimal.text(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: signing))
  }

  /// Whether the text is the session's token; in constant time.
  func accepts(_ token: String?, for session: Session) -> Bool {
    Self.isCode(token ?? "", of: session.id, under: checking)
  }

  /// Whether the text is the signature of a URL; in constant time.
  func accepts(signature: String, ofURL text: String) -> Bool { Self.isCode(signature, of: text, under: signing) }

  private static func isCode(_ code: String, of text: String, under key: SymmetricKey) -> Bool {
    let digits = code.utf8.compactMap(Hexadecimal.value)
    guard digits.count == 64, code.utf8.count == 64 else { return false }
    let bytes = stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    return HMAC<SHA256>.isValidAuthenticationCode(bytes, authenticating: Array(text.utf8), using: key)
  }
}
