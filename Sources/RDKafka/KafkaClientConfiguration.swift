/// How to reach a cluster, and as whom. Shared by producers, consumers and administration.
///
/// The values of ``properties`` are secrets as far as this target is concerned: they appear in no log, error or
/// description.
package struct KafkaClientConfiguration: Sendable {
  /// `host:port`, several separated by commas.
  package var bootstrapServers: String
  /// The name under which the client shows up in the broker's logs, quotas and metrics.
  package var clientID: String
  /// Any further librdkafka property, for example `security.protocol` or `sasl.password`. An unknown key, a value that
  /// librdkafka does not accept, and a key which this target sets itself fail when the client is made, naming the key.
  package var properties: [String: String]
  /// The kind of cluster, which producers and consumers take their default settings from.
  package var profile: ClusterProfile

  /// Makes a configuration.
  package init(
    bootstrapServers: String,
    clientID: String,
    properties: [String: String] = [:],
    profile: ClusterProfile = ClusterProfile()
  ) {
    self.bootstrapServers = bootstrapServers
    self.clientID = clientID
    self.properties = properties
    self.profile = profile
  }
}

extension KafkaClientConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Servers, client and the names of the further properties; never their values.
  package var description: String {
    "\(clientID)@\(bootstrapServers) with \(properties.keys.sorted())"
  }

  /// As ``description``: debugging output ends up in logs, too.
  package var debugDescription: String {
    description
  }

  /// Keeps `dump` and string interpolation of an enclosing struct from printing the properties' values.
  package var customMirror: Mirror {
    Mirror(self, children: ["bootstrapServers": bootstrapServers, "clientID": clientID])
  }
}

extension KafkaClientConfiguration {
  /// What every client sets.
  var commonProperties: [Property] {
    [
      Property("bootstrap.servers", bootstrapServers),
      Property("client.id", clientID),
      // Log lines come as events on the handle's queue instead of on librdkafka's own threads.
      Property("log.queue", "true"),
      Property("socket.keepalive.enable", "true"),
      // Until 2.10 Nagle's algorithm is on by default and costs up to 40 ms where few requests are in flight.
      Property("socket.nagle.disable", "true"),
      Property("reconnect.backoff.ms", "\(profile.reconnectBackoff.wholeMilliseconds)"),
      Property("reconnect.backoff.max.ms", "\(profile.maximumReconnectBackoff.wholeMilliseconds)"),
    ]
  }
}
