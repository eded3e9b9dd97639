import FanfareCore
import HTTPTypes
import Hummingbird

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
  func session(of request: Request) -> SessionKey.Session? {
    guard let cookies = request.headers[.cookie] else { return nil }
    for cookie in cookies.split(separator: ";") {
      let parts = cookie.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].drop(while: { $0 == " " }) == Self.name else { continue }
      if let session = key.unseal(String(parts[1]), at: clock.now()) { return session }
    }
    return nil
  }

  /// Whether a request comes from the page: it must then not make the browser ask for a password by itself.
  static func isOfPage(_ request: Request) -> Bool { request.headers[.csrfToken] != nil }

  /// Throws `.forbidden` if a request that changes something comes without the session's token.
  func requireToken(_ request: Request, _ session: SessionKey.Session) throws(Refusal) {
    guard ![.get, .head, .options].contains(request.method) else { return }
    guard key.accepts(request.headers[.csrfToken], for: session) else {
      throw Refusal(.forbidden, "X-CSRF-Token must be the csrfToken of the session")
    }
  }

  /// The value of `Set-Cookie`.
  func field(_ session: SessionKey.Session, _ context: FrontEndContext) throws -> String {
    "\(Self.name)=\(try key.seal(session, at: clock.now()))" + attributes(context)
  }

  /// The value of `Set-Cookie` that removes the cookie.
  func removal(_ context: FrontEndContext) -> String { "\(Self.name)=" + attributes(context) + "; Max-Age=0" }

  /// Renews a session that was not renewed lately.
  func renew(_ response: inout Response, _ session: SessionKey.Session, _ context: FrontEndContext) throws {
    guard clock.now() - session.renewedAt >= Self.renewal, response.headers[.setCookie] == nil else { return }
    response.headers[.setCookie] = try field(session, context)
  }

  private func attributes(_ context: FrontEndContext) -> String {
    // A proxy in front ends TLS: without TLS the listener answers others only through one.
    "; Path=/; HttpOnly; SameSite=Strict" + (isSecure || context.connection.isProxy ? "; Secure" : "")
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  static let csrfToken = HTTPField.Name("X-CSRF-Token")!
}
