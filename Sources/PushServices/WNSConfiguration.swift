package import FanfareCore

/// What it takes to send to the Windows devices of one app through WNS.
package struct WNSConfiguration: Sendable {
  /// How the app identifies itself. The two do not mix: a token works only for channels of the app that owns it.
  package enum Flow: Sendable {
    /// An app of the Store: its package SID (`ms-app://s-1-15-2-…`) and secret, from Partner Center.
    case store(packageSID: String, secret: String)
    /// An app on the Windows App SDK: its registration in Entra ID.
    case entra(tenant: String, applicationID: String, secret: String)

    /// The app's secret.
    var secret: String {
      switch self {
      case .store(_, let secret), .entra(_, _, let secret): secret
      }
    }

    /// The same app with another secret.
    func with(secret: String) -> Self {
      switch self {
      case .store(let packageSID, _): .store(packageSID: packageSID, secret: secret)
      case .entra(let tenant, let applicationID, _):
        .entra(tenant: tenant, applicationID: applicationID, secret: secret)
      }
    }
  }

  /// The hub whose app it is.
  package var hub: HubName
  package var flow: Flow

  /// Where access tokens come from, instead of the flow's own; an `https` URL.
  package var tokenEndpoint: String?
  /// Another host and port to connect to, whatever channel URIs say, for test doubles: it must show a certificate for
  /// that host. Path, query and `Host` remain the channel's, and channels remain restricted to `notify.windows.com`.
  package var connectTo: (host: String, port: Int)?
  /// Certificates in PEM to trust instead of the system's, for WNS and the token endpoint.
  package var trustRoots: String?
  /// Requests on their way at most, each on a connection of its own.
  package var maximumConnections = 64
  /// Pushes waiting at most, for an access token or for a connection; more are `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included.
  package var requestTimeout: Duration = .seconds(20)
  /// The time for one request for an access token; no more than `requestTimeout` in any case, for pushes wait for it.
  package var tokenTimeout: Duration = .seconds(10)

  package init(hub: HubName = .default, flow: Flow) {
    self.hub = hub
    self.flow = flow
  }

  /// Throws unless every field can be what it says.
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

extension WNSConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Whose it is; no credential.
  package var description: String {
    switch flow {
    case .store: "WNS of a Store app, hub \(hub)"
    case .entra: "WNS of an Entra ID app, hub \(hub)"
    }
  }

  package var debugDescription: String { description }

  /// Keeps `dump` and interpolation of an enclosing value from printing the secret.
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension WNSConfiguration.Flow: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The flow's name; no credential.
  package var description: String {
    switch self {
    case .store: "store"
    case .entra: "entra"
    }
  }

  package var debugDescription: String { description }

  /// Keeps `dump` from printing the secret.
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}
