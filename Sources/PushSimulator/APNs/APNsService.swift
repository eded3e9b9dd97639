import FanfareCore

/// APNs without the transport: the reaction to a push.
final class APNsService: Sendable {
  let tokens: ProviderTokens
  private let rules: APNsRules
  private let injector: FaultInjector
  private let store: DeviceStore
  private let clock: any WallClock
  private let streams: Int
  private let connections = APNsConnections()

  /// Throws if the credential's key is invalid.
  init(_ configuration: SimulatorConfiguration, credentials: SimulatorCredentials.APNsApp, injector: FaultInjector)
    throws
  {
    tokens = try ProviderTokens(credentials)
    rules = APNsRules(bundleIDs: credentials.bundleIDs)
    self.injector = injector
    streams = configuration.apnsStreams
    store = injector.store
    clock = configuration.clock
  }

  /// The reaction to one request on a connection.
  func react(to request: APNsRequest, on connection: Int) -> Reaction {
    let now = clock.now()
    let token = request.deviceToken
    let handle = token ?? ""
    let id = request.id ?? PushID.random().description
    let refusal = refusal(of: request, on: connection, deviceToken: token, now: now).map {
      Self.answer($0, id: id, now: now)
    }
    var reaction = injector.reaction(of: .apns, platform: .apns, handle: handle, refusal: refusal) { fault in
      Self.answer(fault, id: id, now: now)
    } accept: {
      store.accept(
        ReceivedNotification(
          platform: .apns, handle: handle, time: now, pushID: request.id, headers: request.kept, payload: request.body))
      return ServiceAnswer(status: 200, headers: [HeaderField("apns-id", id)], label: "200", isAccepted: true)
    }
    if case .answer(let answer) = reaction.ending, answer.isAccepted, connections.didSucceed(connection) {
      reaction.streamLimit = reaction.streamLimit ?? streams
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
      body: body,
      label: "\(fault.status) \(reason)")
  }
}
