import FanfareCore
import HTTPServer
import HTTPTypes
import Operations

/// The routes to open, see and end a session: how a person logs in with a browser.
struct SessionRoutes: Sendable {
  private static let maximumBodySize = 16 * 1024

  let access: AccessControl
  let cookie: SessionCookie

  var routes: [Route] {
    [
      // Its credentials are in the body.
      .open(.post, Self.path) { _ in .later { try await open($0) } },
      Route(.get, Self.path, [], takesRead: false) { exchange, caller in
        .json(document(caller, cookie.session(of: exchange)), isPrivate: true)
      },
      Route(.delete, Self.path, [], takesRead: false) { exchange, _ in
        var answer = Answer(status: .noContent)
        answer.headers[.setCookie] = cookie.removal(exchange)
        return answer
      },
    ]
  }

  static let path = "api/session"

  private func open(_ exchange: Exchange) async throws -> Answer {
    try MediaType.json.require(of: exchange)
    let credentials = try Self.credentials(reading: try await exchange.bytes(upTo: Self.maximumBodySize))
    let caller = try await access.logIn(credentials, exchange)
    do { try caller.require(anyOf: [.operate, .readAll]) } catch {
      access.security.record(.forbidden, for: exchange, by: caller)
      throw error
    }
    let session = cookie.key.open(credentials, hub: caller.hub.name, at: cookie.clock.now())
    let field = try cookie.field(session, exchange)
    access.security.record(.sessionOpened, for: exchange, by: caller, details: ["credentials": credentials.description])
    var response = Answer.json(document(caller, session), status: .created, isPrivate: true)
    response.headers[.setCookie] = field
    return response
  }

  private func document(_ caller: Caller, _ session: SessionKey.Session?) -> [UInt8] {
    JSONWriter.object {
      $0.member("user", caller.user)
      $0.member("hub", caller.hub.name.rawValue)
      $0.array("scopes", caller.scopes.map(\.rawValue).sorted()) { writer, scope in scope.write(to: &writer) }
      $0.member("csrfToken", session.map { cookie.key.token(of: $0) })
    }
  }

  /// Reads `{"user", "password"}` or `{"key"}`. Errors name the member, never its value.
  private static func credentials(reading body: ArraySlice<UInt8>) throws -> Credentials {
    var (user, password, key): (String?, String?, String?)
    var reader = try JSONReader(body, refusesLoneSurrogates: true)
    try reader.readObject { name, reader throws(JSONError) in
      switch name {
      case "user": user = try reader.readString()
      case "password": password = try reader.readString()
      case "key": key = try reader.readString()
      default: throw reader.error("is not a known member")
      }
    }
    try reader.finish()
    if let key {
      guard user == nil, password == nil else {
        throw Refusal(.invalidField, "key must not be given together with user and password")
      }
      guard let credentials = Credentials("Bearer " + key) else {
        throw Refusal(.invalidField, "key must be an API key or a token")
      }
      return credentials
    }
    guard let user else { throw Refusal(.invalidField, "user is missing") }
    guard let password else { throw Refusal(.invalidField, "password is missing") }
    guard let basic = BasicCredentials(user: user, password: password) else {
      throw Refusal(.invalidField, "user must be a user name and password at most 511 bytes: \(UserName.rule)")
    }
    return .basic(basic)
  }
}
