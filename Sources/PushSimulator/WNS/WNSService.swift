package import FanfareCore

/// WNS without the transport: the reaction to a notification, and to requests for access tokens.
package final class WNSService: SimulatedPushService {
  package static let platform = Platform.wns
  package static let tokenEndpoint: String? = "microsoft-token"
  // A channel's URI may have any path.
  package static let takesEveryRequest = true
  package static let hosts = ["*.notify.windows.com", "login.live.com", "login.microsoftonline.com"]
  package static let prefixes = [
    HandlePrefix(.wns, "dead", .answer(status: 410), "410 Gone: the channel has expired"),
    HandlePrefix(.wns, "unknown", .answer(status: 404), "404: no such channel"),
    HandlePrefix(.wns, "foreign", .answer(status: 403), "403: the channel belongs to another app"),
    HandlePrefix(.wns, "blocked", .answer(status: 410, reason: "Domain Blocked"), "410 Domain Blocked"),
    HandlePrefix(.wns, "dropped", .answer(status: 200, reason: "dropped"), "200, X-WNS-Status: dropped"),
    HandlePrefix(
      .wns, "channelthrottled", .answer(status: 200, reason: "channelthrottled"),
      "200, X-WNS-Status: channelthrottled"),
    HandlePrefix(.wns, "throttled", .answer(status: 406, retryAfter: 1), "406, Retry-After 1"),
    HandlePrefix(.wns, "error", .answer(status: 500), "500"),
    HandlePrefix(.wns, "unavailable", .answer(status: 503, retryAfter: 1), "503, Retry-After 1"),
    HandlePrefix(.wns, "silent", .silence, "never answered"),
    HandlePrefix(.wns, "hangup", .dropConnection, "connection dropped"),
  ]

  package static func normalized(handle: String) -> String { ChannelToken.token(ofURI: handle) ?? handle }

  private let microsoft: MicrosoftToken
  private let tenant: String
  private let injector: FaultInjector
  private let clock: any WallClock

  package init(_ configuration: SimulatorConfiguration, app: SimulatorCredentials.WindowsApp, injector: FaultInjector) {
    microsoft = MicrosoftToken(configuration, app: app, injector: injector)
    tenant = app.tenantID
    self.injector = injector
    clock = configuration.clock
  }

  package func expireTokens() { microsoft.tokens.expireAll() }

  package func replaceKey() -> SimulatorCredentials.WindowsApp { microsoft.replaceSecrets() }

  package func addresses(_ endpoints: SimulatorEndpoints) -> KeyValuePairs<String, String> {
    [
      "wns": endpoints.wnsURL, "liveToken": endpoints.liveTokenURL,
      "entraToken": endpoints.entraTokenURL(tenant: tenant),
    ]
  }

  package func reaction(to request: SimulatedRequest) -> Reaction? {
    if let reaction = microsoft.reaction(to: request) { return reaction }
    let channel = ChannelToken.token(ofURI: request.target)
    let handle = channel ?? ""
    let trace = Trace(request)
    let refusal = refusal(of: request, channel: channel).map {
      Self.answer($0.status, error: $0.description, trace: trace)
    }
    return injector.reaction(of: .wns, handle: handle, refusal: refusal) { fault in
      Self.answer(fault, trace: trace)
    } accept: {
      injector.store.accept(
        ReceivedNotification(
          platform: .wns, handle: handle, time: clock.now(),
          // The base of the correlation vector, before its first dot, is the same for every repetition.
          pushID: request["ms-cv"].map { String($0.prefix { $0 != "." }) },
          headers: request.kept, payload: request.body))
      return Self.answer(200, state: "received", trace: trace, isAccepted: true)
    }
  }

  private func refusal(of request: SimulatedRequest, channel: String?) -> WNSRules.Refusal? {
    guard channel != nil else { return .init(status: 404, description: "The channel URI is not valid.") }
    guard let token = request.bearerToken, microsoft.tokens.isGood(token) else {
      return .init(status: 401, description: "The authorization header is missing or its token is not valid.")
    }
    return WNSRules.refusal(of: request)
  }

  private static func answer(
    _ status: Int, state: String? = nil, error: String? = nil, trace: Trace, isAccepted: Bool = false,
    label: String? = nil, extra: [HeaderField] = []
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
  /// The tracing fields of every answer.
  fileprivate struct Trace {
    let headers: [HeaderField]
    let wantsStatus: Bool

    init(_ request: SimulatedRequest) {
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

extension WNS: SimulatedPlatform {
  package typealias Simulated = WNSService
}

extension SimulatedService {
  package static var wns: Self { Self(.wns) }
  /// Microsoft's two OAuth 2 token endpoints.
  package static var microsoftToken: Self { Self(tokensOf: .wns) }
}

extension SimulatorEndpoints {
  /// WNS; channels keep their own path and query here.
  package var wnsURL: String { url(of: .wns) }
  /// Microsoft's token endpoint of apps with a package SID.
  package var liveTokenURL: String { "\(httpsURL)/accesstoken.srf" }

  /// Microsoft's token endpoint of apps that belong to a tenant.
  package func entraTokenURL(tenant: String) -> String { "\(httpsURL)/\(tenant)/oauth2/v2.0/token" }
}

/// The token in a WNS channel's URI, which identifies the channel.
enum ChannelToken {
  /// The decoded `token` of the query of a URI, or of its path and query; nil if there is none.
  static func token(ofURI uri: some StringProtocol) -> String? {
    guard let mark = uri.utf8.firstIndex(of: UInt8(ascii: "?")) else { return nil }
    for pair in uri.utf8[uri.utf8.index(after: mark)...].split(separator: UInt8(ascii: "&"))
    where pair.starts(with: "token=".utf8) {
      let token = PercentEncoding.decode(pair.dropFirst(6))
      return token.isEmpty ? nil : token
    }
    return nil
  }
}

/// The rules of WNS for header fields and payloads.
enum WNSRules {
  /// The most bytes of a payload.
  static let payloadLimit = 5000

  struct Refusal {
    let status: Int
    let description: String
  }

  /// Why the notification is refused; nil if it is valid.
  static func refusal(of request: SimulatedRequest) -> Refusal? {
    guard request.method == "POST" else { return Refusal(status: 405, description: "The method must be POST.") }
    if let name = request.repeatedField { return bad("The \(name) header occurs twice.") }
    if request["transfer-encoding"] != nil { return bad("Chunked encoding is not supported.") }
    guard request["content-length"] != nil else { return bad("The Content-Length header is missing.") }
    guard let type = request["x-wns-type"] else { return bad("The X-WNS-Type header is missing.") }
    guard ["wns/toast", "wns/tile", "wns/badge", "wns/raw"].contains(type) else {
      return bad("The X-WNS-Type header is invalid.")
    }
    guard request.mediaType == (type == "wns/raw" ? "application/octet-stream" : "text/xml") else {
      return bad("The Content-Type header does not match the notification type.")
    }
    if let refusal = refusalOfOptionalHeaders(of: request) { return refusal }
    guard request.body.count <= payloadLimit else {
      return Refusal(status: 413, description: "The payload exceeds 5000 bytes.")
    }
    guard !request.body.isEmpty else { return bad("The payload is empty.") }
    if type != "wns/raw", XMLText.rootElement(of: request.body) != String(type.dropFirst(4)) {
      return bad("The payload is not well-formed XML of the notification type.")
    }
    return nil
  }

  private static func refusalOfOptionalHeaders(of request: SimulatedRequest) -> Refusal? {
    if let policy = request["x-wns-cache-policy"], policy != "cache", policy != "no-cache" {
      return bad("The X-WNS-Cache-Policy header is invalid.")
    }
    if let wish = request["x-wns-requestforstatus"], wish != "true", wish != "false" {
      return bad("The X-WNS-RequestForStatus header is invalid.")
    }
    if let ttl = request["x-wns-ttl"], UInt64(ttl) == nil { return bad("The X-WNS-TTL header is invalid.") }
    if let priority = request["x-wns-priority"], UInt8(priority).map({ (1...4).contains($0) }) != true {
      return bad("The X-WNS-PRIORITY header is invalid.")
    }
    for name in ["x-wns-tag", "x-wns-group"] {
      guard let value = request[name] else { continue }
      guard (1...16).contains(value.utf8.count),
        value.unicodeScalars.allSatisfy({ $0.isASCII && $0.properties.isAlphanumeric })
      else { return bad("The \(name) header must have 1 to 16 alphanumeric characters.") }
    }
    return nil
  }

  private static func bad(_ description: String) -> Refusal { Refusal(status: 400, description: description) }
}

extension Unicode.Scalar.Properties {
  fileprivate var isAlphanumeric: Bool { isAlphabetic || numericType == .decimal }
}
