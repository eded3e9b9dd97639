import FanfareCore
import HTTPTypes
import Hummingbird
import Operations

/// Finds a request's hub and caller, and checks that the caller's scopes admit it to the route.
/// Every route of `ProtectedRoute` is called by it.
///
/// An unknown hub is answered as wrong credentials are, in the same time: the credentials are checked by the
/// authenticators of a hub that exists, and the result is dropped. So the answer does not tell which hubs there are.
struct AccessControl: Sendable {
  let security: SecurityLog

  /// Reads and renews the sessions of browsers.
  let cookie: SessionCookie

  private let logins: LoginGuard
  private let clock: any WallClock
  private let hubs: [HubName: HubEntry]
  /// Its authenticators check the credentials for unknown hubs.
  private let decoy: HubEntry
  /// The default hub, or the first one: for what belongs to no other hub.
  var fallbackHub: HubName { decoy.name }
  private let challenges: [String]

  /// There must be at least one hub.
  init(
    hubs: [HubEntry], logins: LoginGuard, cookie: SessionCookie, security: SecurityLog, clock: any WallClock
  ) {
    self.logins = logins
    self.cookie = cookie
    self.clock = clock
    self.security = security
    self.hubs = Dictionary(uniqueKeysWithValues: hubs.map { ($0.name, $0) })
    decoy = self.hubs[.default] ?? hubs[0]
    // Those of all hubs, so that the challenges of an unknown hub are the same too.
    var challenges: [String] = []
    for challenge in hubs.flatMap(\.authenticators).map(\.challenge)
    where !challenge.isEmpty && !challenges.contains(challenge) { challenges.append(challenge) }
    self.challenges = challenges
  }

  /// Handles a request of a caller whose scopes admit it to the route, and records refusals.
  ///
  /// Throws `.unauthenticated`, `.forbidden`, the errors of the authenticators, and those of `handle`.
  func handle(
    _ request: Request, _ context: FrontEndContext, to route: ProtectedRoute,
    by handle: @escaping @Sendable (Request, FrontEndContext, Caller) async throws -> Response
  ) async throws -> Response {
    let (caller, session) = try await authenticate(request, context)
    return try await recordingRefusals(of: caller, context) {
      if let session { try cookie.requireToken(request, session) }
      if !route.scopes.isEmpty { try caller.require(anyOf: route.scopes) }
      var response = try await perform(request, context, by: caller, takesRead: route.takesRead) {
        try await handle(request, context, caller)
      }
      // An open page asks for the pulse every second, also while it is unattended.
      if let session, route.path != ProtectedRoute.readPulse.path { try cookie.renew(&response, session, context) }
      return response
    }
  }

  /// Whether the caller of a request that is being answered would be admitted again: its credentials may have been
  /// revoked since.
  func admits(_ request: Request, _ context: FrontEndContext, to route: ProtectedRoute) async -> Bool {
    do {
      let (caller, _) = try await authenticate(request, context)
      if !route.scopes.isEmpty { try caller.require(anyOf: route.scopes) }
      return true
    } catch {
      return false
    }
  }

  /// See `FrontEndOperations.admit`.
  func admit(
    _ request: Request, with credentials: Credentials?, to hub: String, _ context: FrontEndContext,
    anyOf scopes: [Scope], by handle: @escaping @Sendable (Caller) async throws -> Response
  ) async throws -> Response {
    guard let credentials else {
      security.record(.unauthenticated, for: context)
      throw unauthenticated("credentials are required")
    }
    let caller = try await authenticate(credentials, context, to: hub, isOfPage: false) { _, _, _ in }
    return try await recordingRefusals(of: caller, context) {
      if !scopes.isEmpty { try caller.require(anyOf: scopes) }
      // The quota is meant for one user, and such a caller acts for all of an app: it has one only as an exception.
      let takesRead = request.method.takesRead && caller.hub.quotas.policy.isException(caller.user)
      return try await perform(request, context, by: caller, takesRead: takesRead) { try await handle(caller) }
    }
  }

  /// Runs the handler of an admitted caller's request. Reads of stores count as the caller's; see `ReadGate`. A request
  /// of GET or HEAD is cancelled when its client goes.
  ///
  /// A large body that is refused for its content counts as a send for each 64 KiB, because nothing else is charged for
  /// reading it. From a caller without permits none is read.
  private func perform(
    _ request: Request, _ context: FrontEndContext, by caller: Caller, takesRead: Bool,
    _ handle: @escaping @Sendable () async throws -> Response
  ) async throws -> Response {
    let (quotas, size) = (caller.hub.quotas, request.bodyPermits)
    if takesRead { try await quotas.charge(1, to: .reads, of: caller.user, at: clock.now()) }
    if size > 0 { try quotas.requireProspect(of: .sends, by: caller.user, at: clock.now()) }
    do {
      return try await ReadCaller.$current.withValue(ReadCaller(hub: caller.hub.name, user: caller.user)) {
        guard request.method == .get || request.method == .head else { return try await handle() }
        return try await context.answer.whileAwaited(handle)
      }
    } catch {
      if size > 0, Refusal(describing: error).code.isOfContent {
        await quotas.countRefused(size, by: caller.user, at: clock.now())
      }
      throw error
    }
  }

  private func recordingRefusals(
    of caller: Caller, _ context: FrontEndContext, _ handle: () async throws -> Response
  ) async throws -> Response {
    do {
      return try await handle()
    } catch {
      switch Refusal(describing: error).code {
      case .forbidden: security.record(.forbidden, for: context, by: caller)
      case .overQuota: security.record(.overQuota, for: context, by: caller)
      default: break
      }
      throw error
    }
  }

  /// Authenticates credentials that are not in the header section: those of a person who logs in with a page.
  func logIn(_ credentials: Credentials, _ context: FrontEndContext) async throws -> Caller {
    try await authenticate(credentials, context, to: Self.hubName(context), isOfPage: true) { _, _, _ in }
  }

  private func authenticate(
    _ request: Request, _ context: FrontEndContext
  ) async throws -> (Caller, SessionKey.Session?) {
    // An `Authorization` field is there on purpose.
    let session = request.headers[.authorization] == nil ? cookie.session(of: request) : nil
    let isOfPage = session != nil || SessionCookie.isOfPage(request)
    guard let credentials = session?.credentials ?? credentials(of: request, context) else {
      security.record(.unauthenticated, for: context)
      throw unauthenticated("credentials are required", isOfPage: isOfPage)
    }
    if let session, session.hub.rawValue != Self.hubName(context) {
      throw unauthenticated("the session belongs to another hub; log in to this one", isOfPage: true)
    }
    let caller = try await authenticate(credentials, context, to: Self.hubName(context), isOfPage: isOfPage) {
      caller, validity, admission in
      // Nothing is remembered of a session: its cookie changes, and its requests need the token.
      guard session == nil else { return }
      context.connection.remember(
        RememberedCaller(
          credentials: request.headers[.authorization].map(CredentialsDigest.init),
          forwardedFor: context.connection.isProxy ? request.headers[.forwardedFor] : nil,
          caller: caller, login: admission.login, validity: validity))
    }
    return (caller, session)
  }

  private static func hubName(_ context: FrontEndContext) -> String {
    context.parameters["hub"].map(String.init) ?? HubName.default.rawValue
  }

  /// `remember` is called with a caller that is valid for further requests.
  private func authenticate(
    _ credentials: Credentials, _ context: FrontEndContext, to name: String, isOfPage: Bool,
    remember: (Caller, Validity, LoginGuard.Admission) -> Void
  ) async throws -> Caller {
    let admission: LoginGuard.Admission
    do {
      admission = try logins.admit(credentials, hub: name, from: context.clientAddress)
    } catch {
      record(.loginRefused, credentials, context)
      throw error
    }
    let hub = HubName(name).flatMap { hubs[$0] }
    do {
      let origin = LoginOrigin(address: context.clientAddress, isKnown: admission.isKnown)
      if let (caller, validity) = try await check(credentials, origin, hub) {
        logins.succeed(admission)
        context.connection.becomeKnown()
        if let validity { remember(caller, validity, admission) }
        return caller
      }
    } catch AuthenticationError.notFetched {
      // Probably an invented key id; its flood must leave a trail.
      record(.loginFailed, credentials, context)
      logins.suspect(admission)
      throw AuthenticationError.notFetched
    } catch {
      logins.abandon(admission)
      throw error
    }
    record(.loginFailed, credentials, context)
    try logins.fail(admission)
    await charge(admission, credentials, hub)
    throw unauthenticated("the credentials are wrong", after: credentials, isOfPage: isOfPage)
  }

  /// Returns the caller that a connection's last requests with the same fields were authenticated as, if the router's
  /// way would authenticate it again without waiting and without counting anything.
  func remembered(_ fields: RequestFields, in hub: HubName, on connection: ClientConnection) -> Caller? {
    guard let entry = connection.remembered(fields, in: hub), entry.validity.isValid else { return nil }
    if let login = entry.login, !logins.isKnown(login) { return nil }
    return entry.caller
  }

  /// Takes a failed login from the user's quota, which all front ends share. Once it is used up, this front end refuses
  /// the user's logins where it is not known. While the database is away, the budgets of this front end are the limit.
  private func charge(_ admission: LoginGuard.Admission, _ credentials: Credentials, _ hub: HubEntry?) async {
    guard case .stranger = admission, case .basic(let basic) = credentials, let hub else { return }
    do {
      try await hub.quotas.charge(1, to: .failedLogins, of: basic.user, at: clock.now())
    } catch {
      guard let seconds = (error as? Refusal)?.retryAfter else { return }
      logins.block(admission, for: .seconds(seconds))
    }
  }

  /// Returns the owner of the credentials; nil if they are wrong or there is no such hub.
  private func check(
    _ credentials: Credentials, _ origin: LoginOrigin, _ hub: HubEntry?
  ) async throws -> (caller: Caller, validity: Validity?)? {
    guard let hub else {
      let stranger = credentials.ofStranger
      for authenticator in decoy.authenticators {
        _ = try await authenticator.authenticate(stranger, hub: decoy.name, from: origin)
      }
      return nil
    }
    // Each kind of credentials has one authenticator (an API key is no JSON Web Token), so the first that admits them is
    // the only one. `RememberedCallers` relies on that: it asks none of them while the principal's validity lasts.
    for authenticator in hub.authenticators {
      guard let principal = try await authenticator.authenticate(credentials, hub: hub.name, from: origin) else {
        continue
      }
      return (Caller(user: principal.user, scopes: principal.scopes, hub: hub), principal.validity)
    }
    return nil
  }

  /// The `Authorization` field if there is one, otherwise the client's certificate.
  private func credentials(of request: Request, _ context: FrontEndContext) -> Credentials? {
    if let field = request.headers[.authorization] { return Credentials(field) }
    return context.clientCertificate.map(Credentials.certificate)
  }

  private func record(_ event: SecurityLog.Event, _ credentials: Credentials, _ context: FrontEndContext) {
    var user: String?
    if case .basic(let basic) = credentials { user = basic.user }
    security.record(
      event, requestID: context.requestID, address: context.clientAddress.description, user: user,
      details: ["credentials": credentials.description])
  }

  /// A page asks for the password itself: a challenge that browsers know would open their own dialogue over it.
  private func unauthenticated(
    _ detail: String, after credentials: Credentials? = nil, isOfPage: Bool = false
  ) -> Refusal {
    var refusal = Refusal(.unauthenticated, detail)
    guard !isOfPage else {
      refusal.challenges = [#"Session realm="fanfare""#]
      return refusal
    }
    refusal.challenges = challenges
    if case .bearer = credentials {
      // Also without that challenge, for a wrong API key.
      if !refusal.challenges.contains(BearerChallenge.text) { refusal.challenges.append(BearerChallenge.text) }
      refusal.challenges = refusal.challenges.map {
        $0 == BearerChallenge.text ? BearerChallenge.afterInvalidToken : $0
      }
    }
    return refusal
  }
}

extension Credentials {
  /// Invented credentials of the same kind: checking them takes as long as for an unknown user.
  fileprivate var ofStranger: Credentials {
    guard case .basic(let basic) = self else { return self }
    let name = String(UInt64.random(in: .min ... .max), radix: 36)
    return .basic(BasicCredentials(user: name, password: "\(name) ") ?? basic)
  }
}

extension SecurityLog {
  /// Records an event of a request, with its caller if it is known.
  func record(
    _ event: Event, for context: FrontEndContext, by caller: Caller? = nil,
    details: @autoclosure () -> [String: String] = [:]
  ) {
    record(
      event, requestID: context.requestID, address: context.clientAddress.description, user: caller?.user,
      hub: caller?.hub.name.rawValue, details: details())
  }
}
