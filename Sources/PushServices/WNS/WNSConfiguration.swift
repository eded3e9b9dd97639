package import FanfareCore

/// The configuration of a sender to the Windows devices of one app through WNS.
package struct WNSConfiguration: Sendable {
  /// How the app gets a token. A token works only for channels of the app that owns it, so the flows do not mix.
  package enum Flow: Sendable {
    /// An app of the Store: its package SID (`ms-app://s-1-15-2-…`) and secret, from Partner Center.
    case store(packageSID: String, secret: String)
    /// An app on the Windows App SDK: its registration in Entra ID.
    case entra(tenant: String, applicationID: String, secret: String)

    var secret: String {
      switch self {
      case .store(_, let secret), .entra(_, _, let secret): secret
      }
    }

    func with(secret: String) -> Self {
      switch self {
      case .store(let packageSID, _): .store(packageSID: packageSID, secret: secret)
      case .entra(let tenant, let applicationID, _):
        .entra(tenant: tenant, applicationID: applicationID, secret: secret)
      }
    }
  }

  /// The hub that owns the app.
  package var hub: HubName
  package var flow: Flow

  /// The URL (`https`) for access tokens, instead of the flow's own.
  package var tokenEndpoint: String?
  /// A test double's host and port to connect to, instead of the channel's; its certificate must be for that host.
  /// Path, query and `Host` remain the channel's, and channels remain restricted to `notify.windows.com`.
  package var connectTo: (host: String, port: Int)?
  /// Root certificates in PEM for WNS and the token endpoint, used instead of the system's.
  package var trustRoots: String?
  /// The most requests in flight, each on a connection of its own.
  package var maximumConnections = StreamLimits.wns.connections
  /// The most pushes that wait for an access token or a connection; further ones end as `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included.
  package var requestTimeout: Duration = .seconds(20)
  /// The time for one request for an access token, at most `requestTimeout`, because pushes wait for it.
  package var tokenTimeout: Duration = .seconds(10)

  package init(hub: HubName = .default, flow: Flow) {
    self.hub = hub
    self.flow = flow
  }

  func validate() throws(PushConfigurationError) {
    switch flow {
    case .store(let packageSID, let secret):
      try ConfigurationCheck.token(packageSID, field: "packageSID")
      try ConfigurationCheck.token(secret, field: "secret")
    case .entra(let tenant, let applicationID, let secret):
      // The tenant, an id or a domain, becomes a segment of a URL's path.
      try ConfigurationCheck.host(tenant, field: "tenant")
      try ConfigurationCheck.token(applicationID, field: "applicationID")
      try ConfigurationCheck.token(secret, field: "secret")
    }
    if let tokenEndpoint { try ConfigurationCheck.httpsURL(tokenEndpoint, field: "tokenEndpoint") }
    if let connectTo {
      try ConfigurationCheck.host(connectTo.host, field: "connectTo.host")
      try ConfigurationCheck.port(connectTo.port, field: "connectTo.port")
    }
    try ConfigurationCheck.positive(maximumConnections, field: "maximumConnections")
    try ConfigurationCheck.positive(maximumQueuedPushes, field: "maximumQueuedPushes")
    try ConfigurationCheck.positive(requestTimeout, field: "requestTimeout")
    try ConfigurationCheck.positive(tokenTimeout, field: "tokenTimeout")
  }
}

extension WNSConfiguration: Redacted {
  package var description: String {
    switch flow {
    case .store: "WNS of a Store app, hub \(hub)"
    case .entra: "WNS of an Entra ID app, hub \(hub)"
    }
  }
}

extension WNSConfiguration.Flow: Redacted {
  package var description: String {
    switch self {
    case .store: "store"
    case .entra: "entra"
    }
  }
}

/// The token request of a flow: the form and the URL it is posted to.
struct WNSTokenRequest: Sendable {
  let url: String
  let form: [TokenClient.Field]

  init(_ configuration: WNSConfiguration) {
    switch configuration.flow {
    case .store(let packageSID, let secret):
      url = configuration.tokenEndpoint ?? "https://login.live.com/accesstoken.srf"
      form = [
        ("grant_type", "client_credentials"), ("client_id", packageSID), ("client_secret", secret),
        ("scope", "notify.windows.com"),
      ]
    case .entra(let tenant, let applicationID, let secret):
      url = configuration.tokenEndpoint ?? "https://login.microsoftonline.com/\(tenant)/oauth2/v2.0/token"
      form = [
        ("grant_type", "client_credentials"), ("client_id", applicationID), ("client_secret", secret),
        ("scope", "https://wns.windows.com/.default"),
      ]
    }
  }
}

extension WNSTokenRequest: Redacted {
  var description: String { url }
}
