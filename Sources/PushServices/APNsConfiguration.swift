package import FanfareCore

/// What it takes to send to the devices of one app through APNs with a provider token.
package struct APNsConfiguration: Sendable {
  /// The hub whose app it is.
  package var hub: HubName
  /// The key's id, 10 characters, as Apple's developer pages show it.
  package var keyID: String
  /// The team's id, 10 characters.
  package var teamID: String
  /// The key file's content: PKCS #8 PEM with a P-256 key (`AuthKey_….p8`).
  package var privateKey: String
  /// The app's bundle id.
  package var topic: String

  /// The environment: `api.push.apple.com`, or `api.sandbox.push.apple.com` for development builds.
  package var host = "api.push.apple.com"
  /// 443, or 2197 where a firewall asks for it.
  package var port = 443
  /// Certificates in PEM to trust instead of the system's.
  package var trustRoots: String?
  /// Connections at most.
  package var maximumConnections = 4
  /// Streams per connection at most, whatever Apple allows.
  package var maximumStreamsPerConnection = 1000
  /// Pushes waiting for a stream at most; more are `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included, after which it is `.unknown`, or not sent.
  package var requestTimeout: Duration = .seconds(20)

  package init(hub: HubName = .default, keyID: String, teamID: String, privateKey: String, topic: String) {
    self.hub = hub
    self.keyID = keyID
    self.teamID = teamID
    self.privateKey = privateKey
    self.topic = topic
  }

  /// Throws unless every field but the key, which is read elsewhere, can be what it says.
  func validate() throws(PushConfigurationError) {
    for (field, value) in [("keyID", keyID), ("teamID", teamID)] {
      let isSound = value.utf8.count == 10 && value.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
      guard isSound else { throw PushConfigurationError(field: field, problem: "must be 10 letters and digits") }
    }
    try ConfigurationCheck.token(topic, field: "topic")
    try ConfigurationCheck.host(host, field: "host")
    try ConfigurationCheck.port(port, field: "port")
    try ConfigurationCheck.positive(maximumConnections, field: "maximumConnections")
    try ConfigurationCheck.positive(maximumStreamsPerConnection, field: "maximumStreamsPerConnection")
    try ConfigurationCheck.positive(maximumQueuedPushes, field: "maximumQueuedPushes")
    try ConfigurationCheck.positive(requestTimeout, field: "requestTimeout")
  }
}

extension APNsConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Where it leads; no credential.
  package var description: String { "APNs \(host):\(port), hub \(hub), topic \(topic)" }

  package var debugDescription: String { description }

  /// Keeps `dump` and interpolation of an enclosing value from printing the key.
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}
