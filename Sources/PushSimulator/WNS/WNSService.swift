import FanfareCore

/// WNS, but for the wire: what it answers to a notification.
final class WNSService: Sendable {
  private let tokens: AccessTokens
  private let injector: FaultInjector
  private let store: DeviceStore
  private let clock: any WallClock

  /// WNS that lets in the bearers of the given tokens.
  init(_ configuration: SimulatorConfiguration, tokens: AccessTokens, injector: FaultInjector) {
    self.tokens = tokens
    self.injector = injector
    store = injector.store
    clock = configuration.clock
  }

  /// The reaction to one request.
  func react(to request: WNSRequest) -> Reaction {
    let channel = ChannelToken.token(ofURI: request.target)
    let handle = channel ?? ""
    let trace = Trace(request)
    let refusal = complaint(about: request, channel: channel).map {
      Self.answer($0.status, error: $0.description, trace: trace)
    }
    return injector.reaction(of: .wns, platform: .wns, handle: handle, refusal: refusal) { fault in
      Self.answer(fault, trace: trace)
    } accept: {
      store.accept(
        ReceivedNotification(
          platform: .wns, handle: handle, time: clock.now(),
          pushID: PushIdentity.base(ofVector: request[PushIdentity.correlationHeader]),
          headers: request.kept, payload: request.body))
      return Self.answer(200, state: "received", trace: trace, isAccepted: true)
    }
  }

  private func complaint(about request: WNSRequest, channel: String?) -> WNSRules.Complaint? {
    guard channel != nil else { return .init(status: 404, description: "The channel URI is not valid.") }
    guard let authorization = request["authorization"], authorization.prefix(7).lowercased() == "bearer ",
      tokens.isGood(String(authorization.dropFirst(7)))
    else { return .init(status: 401, description: "The authorization header is missing or its token is not valid.") }
    return WNSRules.complaint(about: request)
  }

  private static func answer(
    _ status: Int, state: String? = nil, error: String? = nil, trace: Trace, isAccepted: Bool = false,
    label: String? = nil,
    extra: [HeaderField] = []
  ) -> ServiceAnswer {
    var headers = trace.headers
    if let state {
      headers.append(HeaderField("X-WNS-Status", state))
      if trace.wantsStatus { headers.append(HeaderField("X-WNS-DeviceConnectionStatus", "connected")) }
    }
    if let error { headers.append(HeaderField("X-WNS-Error-Description", error)) }
    if status == 401 { headers.append(HeaderField("WWW-Authenticate", "Bearer error=\"invalid_token\"")) }
    return ServiceAnswer(
      status: status, headers: headers + extra, label: label ?? (isAccepted ? "200" : String(status)),
      isAccepted: isAccepted)
  }

  private static func answer(_ fault: FaultAnswer, trace: Trace) -> ServiceAnswer {
    if fault.status == 200 {
      let state = fault.reason ?? "dropped"
      return answer(200, state: state, trace: trace, label: "200 \(state)", extra: fault.headers)
    }
    let usual =
      switch fault.status {
      case 403: "The channel belongs to another app."
      case 404: "The channel URI is not valid."
      case 406: "The cloud service exceeded its throttle limit."
      case 410: "The channel has expired."
      default: "Ordered by a fault."
      }
    return answer(
      fault.status, error: fault.reason ?? usual, trace: trace,
      label: fault.reason.map { "\(fault.status) \($0)" } ?? String(fault.status), extra: fault.headers)
  }
}

extension WNSService {
  /// What every answer repeats or adds for tracing.
  fileprivate struct Trace {
    let headers: [HeaderField]
    let wantsStatus: Bool

    init(_ request: WNSRequest) {
      let number = UInt64.random(in: .min ... .max)
      let digits = String(number, radix: 16, uppercase: true)
      let id = String(repeating: "0", count: 16 - digits.count) + digits
      headers =
        [HeaderField("X-WNS-Msg-ID", id), HeaderField("X-WNS-Debug-Trace", "SIMULATOR")]
        + (request["ms-cv"].map { [HeaderField("MS-CV", $0)] } ?? [])
      wantsStatus = request["x-wns-requestforstatus"] == "true"
    }
  }
}
