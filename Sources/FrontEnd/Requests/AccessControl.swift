import FanfareCore
import HTTPServer
import HTTPTypes
import NIOCore
import Operations
import Synchronization

/// Finds a request's hub and caller, and checks that the caller's scopes admit it to the route.
/// It begins every route that needs credentials.
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

  /// Begins a request of a caller whose scopes admit it to the route, and records refusals.
  ///
  /// If the connection remembers the caller and nothing has to be read or reserved, `begin` is called at once; otherwise
  /// by a task, after the caller is authenticated. Throws `.unauthenticated`, `.forbidden`, the errors of the
  /// authenticators, and those of `begin`.
  func admit(_ exchange: Exchange, to route: Route, begin: @escaping Route.Begin) throws -> Reply {
    guard !route.takesRead, exchange.isSmall, let caller = remembered(exchange) else {
      return .later { try await handle($0, route, begin) }
    }
    do {
      if !route.scopes.isEmpty { try caller.require(anyOf: route.scopes) }
      let reply = try begin(exchange, caller)
      guard case .later(let work) = reply else { return reply }
      return finishing(of: caller, work)
    } catch {
      // To be charged for.
      guard exchange.bodyPermits == 0 else { return finishing(of: caller) { _ in throw error } }
      record(error, of: caller, exchange)
      throw error
    }
  }

  private func finishing(
    of caller: Caller, _ work: @escaping @Sendable (Exchange) async throws -> Answer
  ) -> Reply {
    .later { exchange in
      try await recordingRefusals(of: caller, exchange) {
        try await perform(exchange, by: caller, takesRead: false) { try await work(exchange) }
      }
    }
  }

  private func handle(_ exchange: Exchange, _ route: Route, _ begin: @escaping Route.Begin) async throws -> Answer {
    let (caller, session) = try await authenticate(exchange)
    return try await recordingRefusals(of: caller, exchange) {
      if let session { try cookie.requireToken(exchange, session) }
      if !route.scopes.isEmpty { try caller.require(anyOf: route.scopes) }
      var answer = try await perform(exchange, by: caller, takesRead: route.takesRead) {
        try await begin(exchange, caller).answer(to: exchange)
      }
      if let session, route.renewsSession { try cookie.renew(&answer, session, exchange) }
      return answer
    }
  }

  /// Whether the caller of a request that is being answered would be admitted again: its credentials may have been
  /// revoked since.
  func admits(_ exchange: Exchange, anyOf scopes: [Scope]) async -> Bool {
    do {
      let (caller, _) = try await authenticate(exchange)
      try caller.require(anyOf: scopes)
      return true
    } catch {
      return false
    }
  }

  /// See `FrontEndOperations.admit`.
  func admit(
    _ exchange: Exchange, with credentials: Credentials?, to hub: String,
    anyOf scopes: [Scope], by handle: @escaping @Sendable (Caller) async throws -> Answer
  ) async throws -> Answer {
    guard let credentials else {
      security.record(.unauthenticated, for: exchange)
      throw unauthenticated("credentials are required")
    }
    let caller = try await authenticate(credentials, exchange, to: hub, isOfPage: false) { _, _, _ in }
    return try await recordingRefusals(of: caller, exchange) {
      if !scopes.isEmpty { try caller.require(anyOf: scopes) }
      // The quota is meant for one user, and such a caller acts for all of an app: it has one only as an exception.
      let takesRead = exchange.method.takesRead && caller.hub.quotas.policy.isException(caller.user)
      return try await perform(exchange, by: caller, takesRead: takesRead) { try await handle(caller) }
    }
  }

  /// Runs the handler of an admitted caller's request. Reads of stores count as the caller's; see `ReadGate`. A request
  /// of GET or HEAD is cancelled when its client goes.
  ///
  /// A large body that is refused for its content counts as a send for each 64 KiB, because nothing else is charged for
  /// reading it. From a caller without permits none is read.
  private func perform(
    _ exchange: Exchange, by caller: Caller, takesRead: Bool,
    _ handle: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    let (quotas, size) = (caller.hub.quotas, exchange.bodyPermits)
    if takesRead { try await quotas.charge(1, to: .reads, of: caller.user, at: clock.now()) }
    if size > 0 { try quotas.requireProspect(of: .sends, by: caller.user, at: clock.now()) }
    do {
      return try await ReadCaller.$current.withValue(ReadCaller(hub: caller.hub.name, user: caller.user)) {
        guard let pending = exchange.pending, exchange.method == .get || exchange.method == .head else {
          return try await handle()
        }
        return try await pending.whileAwaited(handle)
      }
    } catch {
      if size > 0, Refusal(describing: error).code.isOfContent {
        await quotas.countRefused(size, by: caller.user, at: clock.now())
      }
      throw error
    }
  }

  private func recordingRefusals(
    of caller: Caller, _ exchange: Exchange, _ handle: () async throws -> Answer
  ) async throws -> Answer {
    do {
      return try await handle()
    } catch {
      record(error, of: caller, exchange)
      throw error
    }
  }

  private func record(_ error: any Error, of caller: Caller, _ exchange: Exchange) {
    switch Refusal(describing: error).code {
    case .forbidden: security.record(.forbidden, for: exchange, by: caller)
    case .overQuota: security.record(.overQuota, for: exchange, by: caller)
    default: break
    }
  }

  /// Authenticates credentials that are not in the header section: those of a person who logs in with a page.
  func logIn(_ credentials: Credentials, _ exchange: Exchange) async throws -> Caller {
    try await authenticate(credentials, exchange, to: Self.hubName(exchange), isOfPage: true) { _, _, _ in }
  }

  private func authenticate(_ exchange: Exchange) async throws -> (Caller, SessionKey.Session?) {
    // An `Authorization` field is there on purpose.
    let session = exchange.headers.authorization == nil ? cookie.session(of: exchange) : nil
    let isOfPage = session != nil || SessionCookie.isOfPage(exchange)
    guard let credentials = session?.credentials ?? credentials(of: exchange) else {
      security.record(.unauthenticated, for: exchange)
      throw unauthenticated("credentials are required", isOfPage: isOfPage)
    }
    if let session, session.hub.rawValue != Self.hubName(exchange) {
      throw unauthenticated("the session belongs to another hub; log in to this one", isOfPage: true)
    }
    let caller = try await authenticate(credentials, exchange, to: Self.hubName(exchange), isOfPage: isOfPage) {
      caller, validity, admission in
      // Nothing is remembered of a session: its cookie changes, and its requests need the token.
      guard session == nil else { return }
      let entry = RememberedCaller(
        credentials: exchange.headers.authorizationBytes.map(CredentialsDigest.init),
        forwardedFor: exchange.connection.isProxy ? exchange.headers.forwardedFor : nil,
        caller: caller, login: admission.login, validity: validity)
      exchange.memory?.callers.withLock { $0.add(entry) }
    }
    return (caller, session)
  }

  private static func hubName(_ exchange: Exchange) -> String {
    exchange.parameters["hub"].map(String.init) ?? HubName.default.rawValue
  }

  /// `remember` is called with a caller that is valid for further requests.
  private func authenticate(
    _ credentials: Credentials, _ exchange: Exchange, to name: String, isOfPage: Bool,
    remember: (Caller, Validity, LoginGuard.Admission) -> Void
  ) async throws -> Caller {
    let admission: LoginGuard.Admission
    do {
      admission = try logins.admit(credentials, hub: name, from: exchange.clientAddress)
    } catch {
      record(.loginRefused, credentials, exchange)
      throw error
    }
    let hub = HubName(name).flatMap { hubs[$0] }
    do {
      let origin = LoginOrigin(address: exchange.clientAddress, isKnown: admission.isKnown)
      if let (caller, validity) = try await check(credentials, origin, hub) {
        logins.succeed(admission)
        exchange.connection.becomeKnown()
        if let validity { remember(caller, validity, admission) }
        return caller
      }
    } catch AuthenticationError.notFetched {
      // Probably an invented key id; its flood must leave a trail.
      record(.loginFailed, credentials, exchange)
      logins.suspect(admission)
      throw AuthenticationError.notFetched
    } catch {
      logins.abandon(admission)
      throw error
    }
    record(.loginFailed, credentials, exchange)
    try logins.fail(admission)
    await charge(admission, credentials, hub)
    throw unauthenticated("the credentials are wrong", after: credentials, isOfPage: isOfPage)
  }

  /// Returns the caller that the connection's last requests with the same fields were authenticated as, if the request
  /// would be authenticated again without waiting and without counting anything.
  private func remembered(_ exchange: Exchange) -> Caller? {
    let fields = exchange.headers
    let credentials = fields.authorizationBytes
    guard !fields.hasRepetitions, credentials != nil || !fields.hasCookie, let memory = exchange.memory,
      let hub = exchange.parameters["hub"].map({ HubName(String($0)) }) ?? HubName.default
    else { return nil }
    let forwardedFor = exchange.connection.isProxy ? fields.forwardedFor : nil
    guard let entry = memory.callers.withLock({ $0.find(credentials, forwardedFor, hub) }),
      entry.validity.isValid, entry.login.map({ logins.isKnown($0) }) ?? true
    else { return nil }
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
  private func credentials(of exchange: Exchange) -> Credentials? {
    if let field = exchange.headers.authorization { return Credentials(field) }
    return exchange.clientCertificate.map(Credentials.certificate)
  }

  private func record(_ event: SecurityLog.Event, _ credentials: Credentials, _ exchange: Exchange) {
    var user: String?
    if case .basic(let basic) = credentials { user = basic.user }
    security.record(
      event, requestID: exchange.id, address: exchange.clientAddress.description, user: user,
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
    _ event: Event, for exchange: Exchange, by caller: Caller? = nil,
    details: @autoclosure () -> [String: String] = [:]
  ) {
    record(
      event, requestID: exchange.id, address: exchange.clientAddress.description, user: caller?.user,
      hub: caller?.hub.name.rawValue, details: details())
  }
}

extension Exchange {
  /// Whether the body is at hand and may be read on the event loop, without a permit for its size.
  fileprivate var isSmall: Bool {
    if case .whole(let bytes) = body { bytes.readableBytes <= 1 << 16 } else { false }
  }
}
