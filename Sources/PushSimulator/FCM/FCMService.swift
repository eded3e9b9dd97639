package import FanfareCore
package import HTTP2

/// FCM's HTTP v1 API without the transport: the reaction to `messages:send`, and to requests for access tokens.
package final class FCMService: SimulatedPushService {
  package static let platform = Platform.fcm
  package static let tokenEndpoint: String? = "google-token"
  package static let hosts = ["fcm.googleapis.com", "oauth2.googleapis.com"]
  package static let streams: Int? = 100
  package static let goAwayReason = "max_age"
  package static let prefixes = [
    HandlePrefix(.fcm, "dead-", .answer(status: 404, reason: "UNREGISTERED"), "404 UNREGISTERED"),
    HandlePrefix(
      .fcm, "invalid-", .answer(status: 400, reason: "INVALID_ARGUMENT"),
      "400 INVALID_ARGUMENT, violation of message.token"),
    HandlePrefix(.fcm, "mismatch-", .answer(status: 403, reason: "SENDER_ID_MISMATCH"), "403 SENDER_ID_MISMATCH"),
    HandlePrefix(
      .fcm, "thirdparty-", .answer(status: 401, reason: "THIRD_PARTY_AUTH_ERROR"), "401 THIRD_PARTY_AUTH_ERROR"),
    HandlePrefix(
      .fcm, "quota-", .answer(status: 429, reason: "QUOTA_EXCEEDED", retryAfter: 1),
      "429 QUOTA_EXCEEDED, Retry-After 1"
    ),
    HandlePrefix(.fcm, "error-", .answer(status: 500, reason: "INTERNAL"), "500 INTERNAL"),
    HandlePrefix(.fcm, "gateway-", .answer(status: 502), "502 with an HTML body"),
    HandlePrefix(
      .fcm, "unavailable-", .answer(status: 503, reason: "UNAVAILABLE", retryAfter: 1),
      "503 UNAVAILABLE, Retry-After 1"
    ),
    HandlePrefix(.fcm, "silent-", .silence, "never answered"),
    HandlePrefix(.fcm, "hangup-", .dropConnection, "connection dropped"),
  ]

  private let google: GoogleToken
  private let projectID: String
  private let injector: FaultInjector
  private let clock: any WallClock

  package init(
    _ configuration: SimulatorConfiguration, app: SimulatorCredentials.GoogleServiceAccount, injector: FaultInjector
  ) throws {
    google = try GoogleToken(configuration, account: app, injector: injector)
    projectID = app.projectID
    self.injector = injector
    clock = configuration.clock
  }

  package func expireTokens() { google.tokens.expireAll() }

  package func replaceKey() throws -> SimulatorCredentials.GoogleServiceAccount { try google.replaceKey() }

  package func addresses(_ endpoints: SimulatorEndpoints) -> KeyValuePairs<String, String> {
    ["fcm": endpoints.url(of: .fcm), "googleToken": endpoints.googleTokenURL]
  }

  package func reaction(to request: SimulatedRequest) -> Reaction? {
    request.method == "POST" && request.path == GoogleToken.path ? google.react(to: request) : nil
  }

  package func reaction(to incoming: HTTP2ServerRequest, on connection: Int) -> Reaction {
    let (request, now) = (SimulatedRequest(incoming), clock.now())
    var message: FCMMessage?
    var refusal: FCMError?
    do {
      try admit(request)
      message = try FCMMessage(request.body)
    } catch {
      refusal = error
    }
    let handle = message?.handle ?? ""
    return injector.reaction(
      of: .fcm, handle: handle, refusal: refusal.map { Self.answer($0) }, render: { Self.answer($0) }
    ) {
      accept(message, request, now: now)
    }
  }

  private func admit(_ request: SimulatedRequest) throws(FCMError) {
    guard !request.authority.isEmpty else { throw .invalidArgument(field: nil, "Missing :authority.") }
    let (prefix, suffix) = ("/v1/projects/", "/messages:send")
    guard request.method == "POST", request.target.hasPrefix(prefix), request.target.hasSuffix(suffix),
      request.target.utf8.count > prefix.utf8.count + suffix.utf8.count
    else { throw .notFound }
    guard let token = request.bearerToken, google.tokens.isGood(token) else { throw .unauthenticated }
    guard request.target.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count) == projectID else {
      throw .permissionDenied
    }
    guard request.mediaType == "application/json" else {
      throw .invalidArgument(field: nil, "Invalid content type, must be application/json.")
    }
  }

  private func accept(_ message: FCMMessage?, _ request: SimulatedRequest, now: UnixTime) -> ServiceAnswer {
    let isDryRun = message?.validateOnly ?? true
    if let message, !isDryRun {
      injector.store.accept(
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

extension FCM: SimulatedPlatform {
  package typealias Simulated = FCMService
}

extension SimulatedService {
  package static var fcm: Self { Self(.fcm) }
  /// Google's OAuth 2 token endpoint.
  package static var googleToken: Self { Self(tokensOf: .fcm) }
}

extension SimulatorEndpoints {
  /// Google's token endpoint, as a key file's `token_uri`.
  package var googleTokenURL: String { httpsURL + GoogleToken.path }
}
