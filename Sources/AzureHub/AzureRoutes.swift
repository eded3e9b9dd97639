package import FanfareCore
package import FrontEnd
package import HTTPServer
import HTTPTypes

/// Where the protocol of Azure Notification Hubs is served.
package struct AzureConfiguration: Sendable {
  /// The components of a path that stands before every hub; empty for none.
  package var prefix: [String] = []
  /// The names of hosts whose requests are all in this protocol, and by which clients know the server.
  package var hosts: [String] = []
  /// Further names of hubs, in lower case.
  package var aliases: [String: HubName] = [:]
  /// Runs the jobs over registrations; nil: they are refused.
  package var jobs: JobRunner?
  package var credentials: [HubName: any HubCredentialStore] = [:]
  /// The hubs whose credentials callers with the right to manage may change.
  package var changeable: Set<HubName> = []

  package init() {}
}

/// The routes of Azure Notification Hubs, for clients that were written for it.
///
/// They translate requests to the operations of the front end's own routes and answer in Azure's form. They are
/// lenient: names of hubs, paths and queries in any letter case, a slash at the end, any `api-version` or none.
package struct AzureRoutes: ProtocolRoutes {
  /// Paths that begin with these are the front end's own, unless the request has one of Azure's tokens.
  private static let reserved: Set<String> = ["api", "hubs", "docs", "console", "healthz", "readyz", "openapi.json"]

  private let configuration: AzureConfiguration
  private let operations: FrontEndOperations
  private let routes: RouteTable<AzureRoute>
  /// By name in lower case.
  private let hubs: [String: HubName]
  private let fallback: HubName

  package init(_ configuration: AzureConfiguration, _ operations: FrontEndOperations) {
    (self.configuration, self.operations) = (configuration, operations)
    hubs = configuration.aliases.merging(operations.hubs.map { ($0.rawValue, $0) }) { $1 }
    fallback = operations.hubs.first { $0 == .default } ?? operations.hubs.first ?? .default
    let downloads = DownloadGate()
    let routes =
      SendRoutes(operations).routes + TelemetryRoutes(operations: operations).routes
      + RegistrationRoutes(operations).routes + InstallationRoutes(operations: operations).routes
      + HubRoutes(operations: operations, credentials: configuration.credentials, changeable: configuration.changeable)
      .routes
      + JobRoutes(operations, configuration.jobs, downloads).routes + FeedbackRoutes(operations, downloads).routes
    var table = RouteTable<AzureRoute>(answersHead: false)
    for route in routes { table.add(route.method, "{hub}/\(route.pattern)", route) }
    self.routes = table
  }

  package func pattern(of request: Exchange) -> String? {
    guard let target = AzureTarget(path: request.path, prefix: configuration.prefix) else {
      // A request that only the host or the token shows to be of this protocol is refused in its form.
      return isMarked(request) ? "/{hub}" : nil
    }
    guard isMarked(request) || !configuration.prefix.isEmpty || isOfHub(target) else { return nil }
    guard case .found(_, let pattern, _) = routes.find(request.method, target.normal) else { return "/{hub}/{other}" }
    return pattern
  }

  package func respond(to request: Exchange) async throws -> Answer {
    guard let target = AzureTarget(path: request.path, prefix: configuration.prefix) else {
      throw Self.refusal(of: .unknownPath)
    }
    let (method, field) = (request.method, request.headers[.authorization])
    let match = routes.find(method, target.normal)
    let route: AzureRoute? = if case .found(let found, _, _) = match { found } else { nil }
    let hub = hubs[target.hub.lowercased()]
    let azure = try AzureRequest(request, target, hub: hub, pattern: route?.pattern ?? "")
    let credentials = field.flatMap { field in
      SharedAccessToken.isToken(field)
        ? Credentials.signature(
          URLSignature(token: field, host: request.authority ?? "", path: String(request.path))) : nil
    }
    if credentials == nil, let handle = route?.handleSigned, SignedURL.holds(for: azure, operations) {
      var response = try await handle(azure)
      AzureAnswer.complete(&response, of: request)
      return response
    }
    // The rules of all hubs are known to each.
    let name = hub?.rawValue ?? fallback.rawValue
    var response = try await operations.admit(request, with: credentials, to: name, anyOf: []) { caller in
      if target.isOfHubs { return try list(azure, method, by: caller) }
      if hub == nil { throw refusal(ofUnknownHub: method, target, by: caller) }
      guard let route else { throw Self.refusal(of: match) }
      guard route.right.isGranted(to: caller) else {
        throw route.right == .manage ? AzureAnswer.lacksManage : AzureAnswer.lacksRight
      }
      return try await route.handle(azure, caller)
    }
    AzureAnswer.complete(&response, of: request)
    return response
  }

  package func answer(to refusal: Refusal, of request: Exchange) -> Answer {
    AzureAnswer.answer(to: refusal, of: request, at: operations.clock.now())
  }

  /// Whether host or token show that a request is of this protocol, whatever its path.
  private func isMarked(_ request: Exchange) -> Bool {
    if let field = request.headers[.authorization], SharedAccessToken.isToken(field) { return true }
    guard !configuration.hosts.isEmpty, let host = request.authority?.lowercased() else { return false }
    return configuration.hosts.contains { host == $0 || host.hasPrefix("\($0):") }
  }

  /// Lists the hubs, for a caller who may manage all.
  private func list(_ request: AzureRequest, _ method: HTTPRequest.Method, by caller: Caller) throws -> Answer {
    guard method == .get || method == .head else {
      var refusal = Refusal(.methodNotAllowed, "The specified HTTP verb is not supported here.")
      refusal.allowedMethods = [.get]
      throw refusal
    }
    guard SharedAccessAuthenticator.isOfNamespace(caller), SharedAccessRight.manage.isGranted(to: caller) else {
      throw AzureAnswer.lacksManage
    }
    let (skip, top) = (
      request.value("$skip").flatMap { Int($0) } ?? 0, request.value("$top").flatMap { Int($0) } ?? 100
    )
    let page = operations.hubs.dropFirst(max(0, skip)).prefix(max(0, top))
    return AzureAnswer.document(
      HubDescription.feed(Array(page), at: request.server, operations.clock.now()), type: AtomType.feed)
  }

  private func isOfHub(_ target: AzureTarget) -> Bool {
    // The root belongs to the front end, unless the request has one of Azure's tokens.
    if target.isOfHubs { return !target.hub.isEmpty }
    let name = target.hub.lowercased()
    return hubs[name] != nil && !Self.reserved.contains(name)
  }

  /// A caller with a rule of all hubs may know which there are; any other one is refused as with a wrong token.
  private func refusal(
    ofUnknownHub method: HTTPRequest.Method, _ target: AzureTarget, by caller: Caller
  ) -> Refusal {
    guard SharedAccessAuthenticator.isOfNamespace(caller) else {
      return Refusal(.unauthenticated, "the token is of another hub")
    }
    return method == .put && target.segments.isEmpty && SharedAccessRight.manage.isGranted(to: caller)
      ? HubRoutes.fixed : Refusal(.notFound, "The hub does not exist.")
  }

  private static func refusal(of match: RouteTable<AzureRoute>.Match) -> Refusal {
    switch match {
    case .found, .unknownPath: return Refusal(.notFound, "No service is hosted at the specified address.")
    case .unknownMethod: return Refusal(.notImplemented, "The specified HTTP verb is not supported here.")
    case .otherMethods(let methods):
      var refusal = Refusal(.methodNotAllowed, "The specified HTTP verb is not supported here.")
      refusal.allowedMethods = methods
      return refusal
    }
  }
}
