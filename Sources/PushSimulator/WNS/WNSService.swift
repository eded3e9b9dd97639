import FanfareCore

/// WNS without the transport: the reaction to a notification.
final class WNSService: Sendable {
  private let tokens: AccessTokens
  private let injector: FaultInjector
  private let store: DeviceStore
  private let clock: any WallClock

  /// Accepts the given tokens.
  init(_ configuration: SimulatorConfiguration, tokens: AccessTokens, injector: FaultInjector) {
    self.tokens = tokens
    self.injector = injector
    store = injector.store
    clock = configuration.clock
  }

  func react(to request: WNSRequest) -> Reaction {
    let channel = ChannelToken.token(ofURI: request.target)
    let handle = channel ?? ""
    let trace = Trace(request)
    let refusal = refusal(of: request, channel: channel).map {
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

  private func refusal(of request: WNSRequest, channel: String?) -> WNSRules.Refusal? {
    guard channel != nil else { return .init(status: 404, description: "The channel URI is not valid.") }
    guard let authorization = request["authorization"], authorization.prefix(7).lowercased() == "bearer ",
      tokens.isGood(String(authorization.dropFirst(7)))
    else { return .init(status: 401, description: "The authorization header is missing or its token is not valid.") }
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

/// A request to WNS.
struct WNSRequest {
  var method: String
  /// Path and query, byte for byte.
  var target: String
  /// All header fields, in order.
  var headers: [HeaderField]
  var body: [UInt8]

  /// The first field with this name, which is given in lower case.
  subscript(name: String) -> String? {
    headers.first { $0.name.lowercased() == name }?.value
  }

  /// The name of a field that occurs twice, in lower case; nil if none does.
  var repeatedField: String? {
    var names: Set<String> = []
    return headers.lazy.map { $0.name.lowercased() }.first { !names.insert($0).inserted }
  }

  /// The fields to keep: all but the credential.
  var kept: [HeaderField] { headers.filter { $0.name.lowercased() != "authorization" } }
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
  static func refusal(of request: WNSRequest) -> Refusal? {
    guard request.method == "POST" else { return Refusal(status: 405, description: "The method must be POST.") }
    if let name = request.repeatedField { return bad("The \(name) header occurs twice.") }
    if request["transfer-encoding"] != nil { return bad("Chunked encoding is not supported.") }
    guard request["content-length"] != nil else { return bad("The Content-Length header is missing.") }
    guard let type = request["x-wns-type"] else { return bad("The X-WNS-Type header is missing.") }
    guard ["wns/toast", "wns/tile", "wns/badge", "wns/raw"].contains(type) else {
      return bad("The X-WNS-Type header is invalid.")
    }
    let mediaType = request["content-type"].map { $0.prefix { $0 != ";" }.lowercased().filter { $0 != " " } }
    guard mediaType == (type == "wns/raw" ? "application/octet-stream" : "text/xml") else {
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

  private static func refusalOfOptionalHeaders(of request: WNSRequest) -> Refusal? {
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
