package import FanfareCore
package import HTTP2
import Synchronization

/// APNs without the transport: the reaction to a push.
package final class APNsService: SimulatedPushService {
  package static let platform = Platform.apns
  package static let hosts = ["api.push.apple.com", "api.sandbox.push.apple.com"]
  // One stream at a time until a push has succeeded.
  package static let streams: Int? = 1
  package static let goAwayReason = #"{"reason":"Shutdown"}"#
  package static let prefixes = [
    HandlePrefix(
      .apns, "dead00",
      .answer(status: 410, reason: "Unregistered", timestamp: UnixTime(milliseconds: 1_700_000_000_123)),
      "410 Unregistered since November 2023"),
    HandlePrefix(.apns, "dead", .answer(status: 410, reason: "Unregistered"), "410 Unregistered since now"),
    HandlePrefix(.apns, "0410", .answer(status: 410, reason: "ExpiredToken"), "410 ExpiredToken since now"),
    HandlePrefix(.apns, "baad", .answer(status: 400, reason: "BadDeviceToken"), "400 BadDeviceToken"),
    HandlePrefix(.apns, "0400", .answer(status: 400, reason: "DeviceTokenNotForTopic"), "400 DeviceTokenNotForTopic"),
    HandlePrefix(.apns, "0403", .answer(status: 403, reason: "ExpiredProviderToken"), "403 ExpiredProviderToken"),
    HandlePrefix(.apns, "0413", .answer(status: 413, reason: "PayloadTooLarge"), "413 PayloadTooLarge"),
    HandlePrefix(
      .apns, "0429", .answer(status: 429, reason: "TooManyRequests", retryAfter: 1),
      "429 TooManyRequests, Retry-After 1"),
    HandlePrefix(.apns, "0500", .answer(status: 500, reason: "InternalServerError"), "500 InternalServerError"),
    HandlePrefix(
      .apns, "0503", .answer(status: 503, reason: "ServiceUnavailable", retryAfter: 1),
      "503 ServiceUnavailable, Retry-After 1"),
    HandlePrefix(.apns, "deaf", .silence, "never answered"),
    HandlePrefix(.apns, "fade", .dropConnection, "connection dropped"),
  ]

  package static func normalized(handle: String) -> String { handle.lowercased() }

  /// The stream limit of a connection after its first accepted push.
  private static let laterStreams = 1000

  private let tokens: ProviderTokens
  private let app: SimulatorCredentials.APNsApp
  private let rules: APNsRules
  private let injector: FaultInjector
  private let clock: any WallClock
  private let connections = APNsConnections()

  package init(_ configuration: SimulatorConfiguration, app: SimulatorCredentials.APNsApp, injector: FaultInjector)
    throws
  {
    tokens = try ProviderTokens(app)
    rules = APNsRules(bundleIDs: app.bundleIDs)
    self.app = app
    self.injector = injector
    clock = configuration.clock
  }

  package func expireTokens() { tokens.expireAll() }

  package func replaceKey() throws -> SimulatorCredentials.APNsApp {
    var renewed = SimulatorCredentials.APNsApp.generate()
    (renewed.teamID, renewed.bundleIDs) = (app.teamID, app.bundleIDs)
    try tokens.replaceKey(renewed)
    return renewed
  }

  package func addresses(_ endpoints: SimulatorEndpoints) -> KeyValuePairs<String, String> {
    ["apns": endpoints.url(of: .apns)]
  }

  package func reaction(to incoming: HTTP2ServerRequest, on connection: Int) -> Reaction {
    var request = APNsRequest(body: incoming.body)
    request.method = incoming.method
    request.path = incoming.path
    for (name, value) in incoming.headers { request.add(name, value) }
    let now = clock.now()
    let token = request.deviceToken
    let handle = token ?? ""
    let id = request.id ?? PushID.random().description
    let refusal = refusal(of: request, on: connection, deviceToken: token, now: now).map {
      Self.answer($0, id: id, now: now)
    }
    var reaction = injector.reaction(of: .apns, handle: handle, refusal: refusal) { fault in
      Self.answer(fault, id: id, now: now)
    } accept: {
      injector.store.accept(
        ReceivedNotification(
          platform: .apns, handle: handle, time: now, pushID: request.id, headers: request.kept, payload: request.body))
      return ServiceAnswer(status: 200, headers: [HeaderField("apns-id", id)], isAccepted: true)
    }
    if case .answer(let answer) = reaction.ending, answer.isAccepted, connections.didSucceed(connection) {
      reaction.streamLimit = reaction.streamLimit ?? Self.laterStreams
    }
    return reaction
  }

  private func refusal(
    of request: APNsRequest, on connection: Int, deviceToken: String?, now: UnixTime
  ) -> APNsReason? {
    guard request.method == "POST" else { return .methodNotAllowed }
    guard let deviceToken else { return .badPath }
    // Apple always writes the scheme in lower case.
    let scheme = "bearer "
    guard let authorization = request.authorization, authorization.utf8.starts(with: scheme.utf8),
      authorization.utf8.count > scheme.utf8.count
    else { return .missingProviderToken }
    if let reason = tokens.refusal(of: authorization, schemeLength: scheme.utf8.count, now: now) {
      if reason == .expiredProviderToken { connections.spend(connection) }
      return reason
    }
    if let reason = connections.refusal(of: authorization, keyID: tokens.keyID, on: connection, now: now) {
      return reason
    }
    return rules.refusal(of: request) ?? rules.refusal(ofDeviceToken: deviceToken)
  }

  private static func answer(_ reason: APNsReason, id: String, now: UnixTime) -> ServiceAnswer {
    answer(
      FaultAnswer(status: reason.status, reason: reason.rawValue, retryAfter: nil, timestamp: nil), id: id, now: now)
  }

  private static func answer(_ fault: FaultAnswer, id: String, now: UnixTime) -> ServiceAnswer {
    let identity = [HeaderField("apns-id", id)]
    guard fault.status != 200 else {
      return ServiceAnswer(status: 200, headers: identity, label: "200 without delivery")
    }
    let reason = fault.reason ?? APNsReason(status: fault.status).rawValue
    let body = JSONWriter.object { json in
      json.member("reason", reason)
      if fault.status == 410 { json.member("timestamp", (fault.timestamp ?? now).milliseconds) }
    }
    return ServiceAnswer(
      status: fault.status, headers: identity + [HeaderField("content-type", "application/json")] + fault.headers,
      body: body, label: "\(fault.status) \(reason)")
  }
}

/// The state of each APNs connection: whether a push has succeeded, its key and its provider token.
final class APNsConnections: Sendable {
  /// Apple: a connection's token may be replaced once in 20 minutes.
  private static let tokenUpdateInterval: Duration = .seconds(20 * 60)
  /// The most connections kept. Numbers increase, so the smallest are of connections that closed long ago; one that is
  /// removed too early counts as new.
  private static let limit = 4096

  private let states = Mutex<[Int: State]>([:])

  private struct State {
    /// The key of the first valid token, which stays the connection's key. APNs allows a family of related keys; which
    /// keys are related is undocumented, so here none are.
    let keyID: String
    var authorization: String
    var updatedAt: UnixTime?
    var hasSucceeded = false
    /// Whether a token has expired on the connection, which makes it unusable.
    var isSpent = false
  }

  /// Why this credential, valid in itself, may not be used on the connection; nil if it may.
  func refusal(of authorization: String, keyID: @autoclosure () -> String, on connection: Int, now: UnixTime)
    -> APNsReason?
  {
    states.withLock { states in
      guard let state = states[connection] else {
        Self.add(State(keyID: keyID(), authorization: authorization), for: connection, to: &states)
        return nil
      }
      if state.isSpent { return .expiredProviderToken }
      if state.authorization == authorization { return nil }
      guard state.keyID == keyID() else { return .unrelatedKeyIDInToken }
      if let updatedAt = state.updatedAt, now - updatedAt < Self.tokenUpdateInterval {
        return .tooManyProviderTokenUpdates
      }
      states[connection]?.authorization = authorization
      states[connection]?.updatedAt = now
      return nil
    }
  }

  /// A token has expired on the connection.
  func spend(_ connection: Int) {
    states.withLock { states in
      if states[connection] == nil { Self.add(State(keyID: "", authorization: ""), for: connection, to: &states) }
      states[connection]?.isSpent = true
    }
  }

  /// A push has succeeded; returns true for the connection's first.
  func didSucceed(_ connection: Int) -> Bool {
    states.withLock { states in
      guard states[connection]?.hasSucceeded == false else { return false }
      states[connection]?.hasSucceeded = true
      return true
    }
  }

  private static func add(_ state: State, for connection: Int, to states: inout [Int: State]) {
    if states.count >= limit {
      for old in states.keys.sorted().prefix(limit / 2) { states[old] = nil }
    }
    states[connection] = state
  }
}

extension APNs: SimulatedPlatform {
  package typealias Simulated = APNsService
}

extension SimulatedService {
  package static var apns: Self { Self(.apns) }
}
