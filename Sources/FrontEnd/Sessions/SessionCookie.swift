import FanfareCore
import HTTPServer
import HTTPTypes

/// Where requests carry sessions and their tokens.
struct SessionCookie: Sendable {
  static let name = "fanfare-session"
  /// A session is renewed at most this often.
  private static let renewal = Duration.seconds(60)

  let key: SessionKey
  /// Whether the listener itself has TLS.
  let isSecure: Bool
  let clock: any WallClock

  /// The session that a request comes with, nil for none or one that has ended.
  func session(of exchange: Exchange) -> SessionKey.Session? {
    guard let cookies = exchange.headers[.cookie] else { return nil }
    for cookie in cookies.split(separator: ";") {
      let parts = cookie.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].drop(while: { $0 == " " }) == Self.name else { continue }
      if let session = key.unseal(String(parts[1]), at: clock.now()) { return session }
    }
    return nil
  }

  /// Whether a request comes from the page: it must then not make the browser ask for a password by itself.
  static func isOfPage(_ exchange: Exchange) -> Bool { exchange.headers[.csrfToken] != nil }

  /// Throws `.forbidden` if a request that changes something comes without the session's token.
  func requireToken(_ exchange: Exchange, _ session: SessionKey.Session) throws(Refusal) {
    guard ![.get, .head, .options].contains(exchange.method) else { return }
    guard key.accepts(exchange.headers[.csrfToken], for: session) else {
      throw Refusal(.forbidden, "X-CSRF-Token must be the csrfToken of the session")
    }
  }

  /// The value of `Set-Cookie`.
  func field(_ session: SessionKey.Session, _ exchange: Exchange) throws -> String {
    "\(Self.name)=\(try key.seal(session, at: clock.now()))" + attributes(exchange)
  }

  /// The value of `Set-Cookie` that removes the cookie.
  func removal(_ exchange: Exchange) -> String { "\(Self.name)=" + attributes(exchange) + "; Max-Age=0" }

  /// Renews a session that was not renewed lately.
  func renew(_ answer: inout Answer, _ session: SessionKey.Session, _ exchange: Exchange) throws {
    guard clock.now() - session.renewedAt >= Self.renewal, answer.headers[.setCookie] == nil else { return }
    answer.headers[.setCookie] = try field(session, exchange)
  }

  private func attributes(_ exchange: Exchange) -> String {
    // A proxy in front ends TLS: without TLS the listener answers others only through one.
    "; Path=/; HttpOnly; SameSite=Strict" + (isSecure || exchange.connection.isProxy ? "; Secure" : "")
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  static let csrfToken = HTTPField.Name("X-CSRF-Token")!
}
