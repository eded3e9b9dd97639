package import FanfareCore

/// The configuration of a sender to one Firebase project through FCM's HTTP v1 API.
package struct FCMConfiguration: Sendable {
  /// The hub that owns the app.
  package var hub: HubName
  /// The account that sends.
  package var serviceAccount: ServiceAccountKey

  /// The API's host.
  package var host = "fcm.googleapis.com"
  package var port = 443
  /// The URL (`https`) for access tokens, instead of the key file's `token_uri`, which stays the assertion's audience.
  package var tokenEndpoint: String?
  /// Root certificates in PEM for the API and the token endpoint, used instead of the system's.
  package var trustRoots: String?
  /// The most connections. FCM allows 100 streams on each.
  package var maximumConnections = 10
  /// The most streams per connection, even if FCM allows more.
  package var maximumStreamsPerConnection = 100
  /// The most pushes that wait for an access token or a stream; further ones end as `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included; Google asks for at least 10 s.
  package var requestTimeout: Duration = .seconds(20)
  /// The time for one request for an access token, at most `requestTimeout`, because pushes wait for it.
  package var tokenTimeout: Duration = .seconds(10)

  package init(hub: HubName = .default, serviceAccount: ServiceAccountKey) {
    self.hub = hub
    self.serviceAccount = serviceAccount
  }

  /// Checks every field except the service account, which was checked when it was read.
  func validate() throws(PushConfigurationError) {
    try validateConnection()
    if let tokenEndpoint { try ConfigurationCheck.httpsURL(tokenEndpoint, field: "tokenEndpoint") }
    try ConfigurationCheck.positive(tokenTimeout, field: "tokenTimeout")
  }
}

extension FCMConfiguration: HTTP2SenderConfiguration, Redacted {
  package var description: String { "FCM \(host):\(port), hub \(hub), project \(serviceAccount.projectID)" }
}
