import FanfareCore

/// FCM's HTTP v1 API without the transport: the reaction to `messages:send`.
final class FCMService: Sendable {
  private let tokens: AccessTokens
  private let projectID: String
  private let injector: FaultInjector
  private let store: DeviceStore
  private let clock: any WallClock

  /// FCM for one project; accepts the given tokens.
  init(_ configuration: SimulatorConfiguration, projectID: String, tokens: AccessTokens, injector: FaultInjector) {
    self.projectID = projectID
    self.tokens = tokens
    self.injector = injector
    store = injector.store
    clock = configuration.clock
  }

  func react(to request: FCMRequest) -> Reaction {
    let now = clock.now()
    var message: FCMMessage?
    var refusal: FCMError?
    do {
      try admit(request)
      message = try FCMMessage(request.body)
    } catch {
      refusal = error
    }
    let handle = message?.handle ?? ""
    return injector.reaction(of: .fcm, platform: .fcm, handle: handle, refusal: refusal.map { Self.answer($0) }) {
      fault in
      Self.answer(fault)
    } accept: {
      accept(message, request, now: now)
    }
  }

  private func admit(_ request: FCMRequest) throws(FCMError) {
    guard !request.authority.isEmpty else { throw .invalidArgument(field: nil, "Missing :authority.") }
    let (prefix, suffix) = ("/v1/projects/", "/messages:send")
    guard request.method == "POST", request.path.hasPrefix(prefix), request.path.hasSuffix(suffix),
      request.path.utf8.count > prefix.utf8.count + suffix.utf8.count
    else { throw .notFound }
    // Google accepts the scheme in any case, as in RFC 9110 §11.1.
    guard let authorization = request.authorization, authorization.prefix(7).lowercased() == "bearer ",
      tokens.isGood(String(authorization.dropFirst(7)))
    else { throw .unauthenticated }
    guard request.path.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count) == projectID else {
      throw .permissionDenied
    }
    let mediaType = request.contentType.map { $0.prefix { $0 != ";" }.lowercased().filter { $0 != " " } }
    guard mediaType == "application/json" else {
      throw .invalidArgument(field: nil, "Invalid content type, must be application/json.")
    }
  }

  private func accept(_ message: FCMMessage?, _ request: FCMRequest, now: UnixTime) -> ServiceAnswer {
    let isDryRun = message?.validateOnly ?? true
    if let message, !isDryRun {
      store.accept(
        ReceivedNotification(
          platform: .fcm, handle: message.handle, time: now, pushID: message.pushID, headers: request.kept,
          payload: request.body))
    }
    let id = isDryRun ? "fake_message_id" : "0:\(now.milliseconds)%\(UInt64.random(in: .min ... .max))"
    let body = JSONWriter.object { $0.member("name", "projects/\(projectID)/messages/\(id)") }
    return ServiceAnswer(
      status: 200, headers: Self.jsonHeaders, body: body, label: isDryRun ? "200 dry run" : "200", isAccepted: !isDryRun
    )
  }

  private static let jsonHeaders = [HeaderField("content-type", "application/json; charset=UTF-8")]

  private static func answer(_ error: FCMError, headers: [HeaderField] = []) -> ServiceAnswer {
    ServiceAnswer(
      status: error.status, headers: jsonHeaders + headers, body: error.body,
      label: "\(error.status) \(error.code ?? error.name)")
  }

  private static func answer(_ fault: FaultAnswer) -> ServiceAnswer {
    switch fault.status {
    case 200:
      return ServiceAnswer(status: 200, headers: jsonHeaders, body: Array("{}".utf8), label: "200 without delivery")
    case 502, 504:
      // Google's front ends answer these with HTML.
      let page = "<!DOCTYPE html><html lang=en><title>Error \(fault.status) (Server Error)!!1</title></html>"
      return ServiceAnswer(
        status: fault.status, headers: [HeaderField("content-type", "text/html; charset=UTF-8")] + fault.headers,
        body: Array(page.utf8), label: String(fault.status))
    default: return answer(FCMError(status: fault.status, code: fault.reason), headers: fault.headers)
    }
  }
}

/// A request to FCM, with its header fields.
struct FCMRequest {
  var method = ""
  var path = ""
  var authority = ""
  var authorization: String?
  var contentType: String?
  /// The fields to keep: all but the credential.
  var kept: [HeaderField] = []
  var body: [UInt8]

  init(body: [UInt8]) { self.body = body }

  /// Adds a header field other than a pseudo field.
  mutating func add(_ name: String, _ value: String) {
    if name == "authorization" {
      authorization = value
    } else {
      if name == "content-type" { contentType = value }
      kept.append(HeaderField(name, value))
    }
  }
}
