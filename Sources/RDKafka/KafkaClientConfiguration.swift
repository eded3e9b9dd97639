/// How to connect to a cluster. Shared by producers, consumers and administration.
///
/// The values of ``properties`` are treated as secrets: they appear in no log, error or description.
package struct KafkaClientConfiguration: Sendable {
  /// `host:port`, several separated by commas.
  package var bootstrapServers: String
  /// The client's name in the broker's logs, quotas and metrics.
  package var clientID: String
  /// Further librdkafka properties, such as `security.protocol` or `sasl.password`.
  ///
  /// Creating a client fails, naming the key, for an unknown key, an invalid value, and a key that this target sets.
  package var properties: [String: String]
  /// TLS and authentication; nil if ``properties`` say all about them.
  package var security: KafkaSecurity?
  /// The kind of cluster, which determines the default settings of producers and consumers.
  package var profile: ClusterProfile
  /// Receives the statistics of producers and consumers every ten seconds; nil for none.
  package var statistics: KafkaStatisticsObserver?

  package init(
    bootstrapServers: String, clientID: String, properties: [String: String] = [:],
    security: KafkaSecurity? = nil, profile: ClusterProfile = ClusterProfile(),
    statistics: KafkaStatisticsObserver? = nil
  ) {
    self.bootstrapServers = bootstrapServers
    self.clientID = clientID
    self.properties = properties
    self.security = security
    self.profile = profile
    self.statistics = statistics
  }
}

/// Receives librdkafka's statistics as JSON, see its STATISTICS.md. Called on the client's thread; must not block.
package typealias KafkaStatisticsObserver = @Sendable (_ json: [UInt8]) -> Void

extension KafkaClientConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Servers, client and the keys of the properties, never their values.
  package var description: String { "\(clientID)@\(bootstrapServers) with \(properties.keys.sorted())" }

  /// Equal to ``description``, because debugging output is logged, too.
  package var debugDescription: String { description }

  /// Prevents `dump` and the interpolation of an enclosing struct from printing the values of the
  /// properties.
  package var customMirror: Mirror {
    Mirror(self, children: ["bootstrapServers": bootstrapServers, "clientID": clientID])
  }
}

extension KafkaClientConfiguration {
  /// The properties of every client.
  var commonProperties: [Property] {
    [
      Property("bootstrap.servers", bootstrapServers),
      Property("client.id", clientID),
      // Log lines come as events on the handle's queue instead of on librdkafka's own threads.
      Property("log.queue", "true"),
      // A topic that a broker creates has the broker's defaults, which may be one replica and compaction. The default
      // is true for producers.
      Property("allow.auto.create.topics", "false"),
      Property("socket.keepalive.enable", "true"),
      Property("reconnect.backoff.ms", "\(profile.reconnectBackoff.wholeMilliseconds)"),
      Property("reconnect.backoff.max.ms", "\(profile.maximumReconnectBackoff.wholeMilliseconds)"),
    ] + Workarounds.properties
  }

  /// The configuration's properties for a handle whose log is not read: without `debug`.
  var silentProperties: [String: String] { properties.filter { $0.key != "debug" } }

  /// The property that has librdkafka make statistics. For handles whose events are served.
  var statisticsProperties: [Property] {
    statistics == nil ? [] : [Property("statistics.interval.ms", "10000")]
  }
}

/// The properties of a cluster that the clients' default settings depend on.
///
/// The defaults are those of a real cluster. A broker for development has a profile of its own.
package struct ClusterProfile: Sendable {
  /// The first wait before a broken connection is opened again, and the longest.
  package var reconnectBackoff: Duration = .milliseconds(100)
  package var maximumReconnectBackoff: Duration = .seconds(2)
  /// The default of ``ProducerConfiguration/deliveryTimeout``.
  package var deliveryTimeout: Duration = .seconds(20)
  /// The default of ``ConsumerConfiguration/sessionTimeout``.
  package var sessionTimeout: Duration = .seconds(15)
  /// The default of ``ConsumerConfiguration/heartbeatInterval``.
  package var heartbeatInterval: Duration = .seconds(3)
  /// The default of ``ConsumerConfiguration/autoCommitInterval``.
  package var autoCommitInterval: Duration = .seconds(1)
  /// The default of ``ConsumerConfiguration/fetchWait``.
  package var fetchWait: Duration = .milliseconds(100)
  /// The wait after a failed fetch; nil means librdkafka's default of 500 ms.
  package var fetchErrorBackoff: Duration?
  /// Delays a consumer's part of each rebalance. nil: a group accepts commits until all members have joined again, as
  /// those of real clusters do.
  package var rebalanceDelay: (any RebalanceDelay.Type)?

  package init() {}
}

/// How long a member delays its part of a rebalance, so that the commits of all members are accepted.
package protocol RebalanceDelay: Sendable {
  init()
  /// Notes that a new generation has assigned or revoked partitions, or changed nothing (`isEmpty`).
  mutating func begin(isAssignment: Bool, isEmpty: Bool, at now: ContinuousClock.Instant)
  /// Whether the member must neither join again nor leave yet.
  func isActive(at now: ContinuousClock.Instant) -> Bool
}

/// One librdkafka setting.
struct Property: Sendable {
  /// The name in librdkafka's CONFIGURATION.md.
  var key: String
  var value: String

  init(_ key: String, _ value: String) {
    self.key = key
    self.value = value
  }
}

/// The settings of one handle.
struct PropertySet: Sendable {
  /// Set first. librdkafka must know them.
  var required: [Property]
  /// Set if the linked librdkafka knows them.
  var ifSupported: [Property]
  /// The configuration's additions and overrides.
  var further: [String: String]
  /// The keys that `further` must not contain, besides those in ``reservedByAll``.
  var reserved: Set<String>
  /// TLS and authentication, set last.
  var security: KafkaSecurity?
  /// Receives the handle's statistics.
  var statistics: KafkaStatisticsObserver?

  /// The keys that `further` must not contain, of any kind of client.
  static let reservedByAll: Set<String> = ["allow.auto.create.topics"]
}
