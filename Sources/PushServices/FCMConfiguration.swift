package import FanfareCore

/// What it takes to send to the devices of one Firebase project through FCM's HTTP v1 API.
package struct FCMConfiguration: Sendable {
  /// The hub whose app it is.
  package var hub: HubName
  /// Who we are towards Google.
  package var serviceAccount: ServiceAccountKey

  /// The API's host.
  package var host = "fcm.googleapis.com"
  package var port = 443
  /// Where access tokens come from, instead of the key file's `token_uri`; an `https` URL. The assertion's audience
  /// stays `token_uri`.
  package var tokenEndpoint: String?
  /// Certificates in PEM to trust instead of the system's, for the API and the token endpoint.
  package var trustRoots: String?
  /// Connections at most. FCM allows 100 streams on each.
  package var maximumConnections = 10
  /// Streams per connection at most, whatever FCM allows.
  package var maximumStreamsPerConnection = 100
  /// Pushes waiting at most, for an access token or for a stream; more are `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included; Google asks for 10 s at least.
  package var requestTimeout: Duration = .seconds(20)
  /// The time for one request for an access token; no more than `requestTimeout` in any case, for pushes wait for it.
  package var tokenTimeout: Duration = .seconds(10)

  package init(hub: HubName = .default, serviceAccount: ServiceAccountKey) {
    self.hub = hub
    self.serviceAccount = serviceAccount
  }

  /// Throws unless every field but the service account, which was checked when it was read, can be what it says.
  func validate() throws(PushConfigurationError) {
    try ConfigurationCheck.host(host, field: "host")
    try ConfigurationCheck.port(port, field: "port")
    if let tokenEndpoint { try ConfigurationCheck.httpsURL(tokenEndpoint, field: "tokenEndpoint") }
    try ConfigurationCheck.positive(maximumConnections, field: "maximumConnections")
    try ConfigurationCheck.positive(maximumStreamsPerConnection, field: "maximumStreamsPerConnection")
    try ConfigurationCheck.positive(maximumQueuedPushes, field: "maximumQueuedPushes")
    try ConfigurationCheck.positive(requestTimeout, field: "requestTimeout")
    try ConfigurationCheck.positive(tokenTimeout, field: "tokenTimeout")
  }
}

extension FCMConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Where it leads; no credential.
  package var description: String { "FCM \(host):\(port), hub \(hub), project \(serviceAccount.projectID)" }

  package var debugDescription: String { description }

  /// Keeps `dump` and interpolation of an enclosing value from printing the key.
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}
