package import FanfareCore

/// The configuration of a sender to one app through APNs, with a provider token.
package struct APNsConfiguration: Sendable {
  /// The hub that owns the app.
  package var hub: HubName
  /// The key's id, 10 characters, from Apple's developer pages.
  package var keyID: String
  /// The team's id, 10 characters.
  package var teamID: String
  /// The content of the key file: PKCS #8 PEM with a P-256 key (`AuthKey_….p8`).
  package var privateKey: String
  /// The app's bundle id.
  package var topic: String

  /// The host: `api.push.apple.com`, or `api.sandbox.push.apple.com` for development builds.
  package var host = "api.push.apple.com"
  /// 443, or 2197 where a firewall requires it.
  package var port = 443
  /// Root certificates in PEM, used instead of the system's.
  package var trustRoots: String?
  /// The most connections.
  package var maximumConnections = 4
  /// The most streams per connection, even if Apple allows more.
  package var maximumStreamsPerConnection = 1000
  /// The most pushes that wait for a stream; further ones end as `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included. A push without an answer by then ends as `.unknown`, or as not sent.
  package var requestTimeout: Duration = .seconds(20)

  package init(hub: HubName = .default, keyID: String, teamID: String, privateKey: String, topic: String) {
    self.hub = hub
    self.keyID = keyID
    self.teamID = teamID
    self.privateKey = privateKey
    self.topic = topic
  }

  /// Checks every field except the key, which the signer reads.
  func validate() throws(PushConfigurationError) {
    for (field, value) in [("keyID", keyID), ("teamID", teamID)] {
      guard value.utf8.count == 10, value.utf8.allSatisfy(\.isLetterOrDigit) else {
        throw PushConfigurationError(field: field, problem: "must be 10 letters and digits")
      }
    }
    try ConfigurationCheck.token(topic, field: "topic")
    try validateConnection()
  }
}

extension APNsConfiguration: HTTP2SenderConfiguration, Redacted {
  package var description: String { "APNs \(host):\(port), hub \(hub), topic \(topic)" }
}
