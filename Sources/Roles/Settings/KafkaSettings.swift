package import FanfareCore
package import RDKafka
package import SettingsTable

/// The connection to Kafka, and the properties of the topics.
package struct KafkaSettings: Sendable, CustomReflectable {
  package var bootstrapServers: String?
  package let bootstrapServersFile: String?
  package let topics: Topics
  let partitions: Int
  package let replicationFactor: Int
  /// What a role does when the topics break a promise.
  package var durabilityCheck: DurabilityPolicy
  let properties: [String: String]
  /// Nil if ``properties`` say all about TLS and authentication.
  let security: KafkaSecuritySettings?
  /// The kind of cluster. No configuration key of the product sets it.
  package var profile = ClusterProfile()

  struct Keys: Sendable {
    @Setting(example: "127.0.0.1:9092", isGiven: true, "host:port; separate several by commas")
    var bootstrapServers: String?
    @Setting(
      example: "broker",
      "a file with these addresses in place of bootstrapServers, such as `fanfare-dev broker` writes")
    var bootstrapServersFile: String?
    @Setting("the beginning of the names of all topics and consumer groups") var topicPrefix = "fanfare"
    @Setting(
      in: 1...1000,
      "partitions of each topic that is created; the status topic gets a quarter of this and a retry "
        + "topic an eighth, but at least one")
    var partitions = 64
    @Setting(in: 1...86_400, atMost: 10, "seconds, at least one; a retry topic for each delay")
    var retryDelays = Topics.defaultRetryDelays
    @Setting(in: 1...10, "of each topic that is created, and the fewest that a topic may have")
    var replicationFactor = 3
    @Setting(
      "whether sends of a hub go through a topic of its own, fanfare.sends.<hub>, to which other backends produce too")
    var ingressTopics = false
    @Setting("what a role does at its start when topics can lose acknowledged sends; with refuse it ends")
    var durabilityCheck = DurabilityPolicy.refuse
    @Setting("further librdkafka properties: [\"socket.timeout.ms=30000\", …]") var properties: [String: String] = [:]
  }

  static let keys = SettingsSection(
    "kafka", Keys(), retired: ["passwordFile": "kafka.security has user, mechanism and passwordFile"])

  init(hubs: [HubName], from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    (bootstrapServers, bootstrapServersFile) = try reader.oneOf("kafka.bootstrapServers", "kafka.bootstrapServersFile")
    let isSound = keys.topicPrefix.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard isSound, keys.topicPrefix.utf8.count <= 100 else {
      throw SettingsError("kafka.topicPrefix", "must be 1 to 100 characters of A–Z a–z 0–9 . _ -")
    }
    guard !keys.retryDelays.isEmpty else {
      throw SettingsError("kafka.retryDelays", "must list at least one delay, such as 60")
    }
    var topics = Topics(prefix: keys.topicPrefix, retryDelays: keys.retryDelays)
    if keys.ingressTopics { topics.ingressHubs = Set(hubs) }
    self.topics = topics
    (partitions, replicationFactor) = (keys.partitions, keys.replicationFactor)
    durabilityCheck = keys.durabilityCheck
    properties = keys.properties
    security = try KafkaSecuritySettings(from: reader)
    if security != nil,
      let name = properties.keys.sorted().first(where: KafkaSecuritySettings.replacedProperties.contains)
    {
      throw SettingsError("kafka.properties", "must not contain \(name) together with kafka.security")
    }
  }

  /// The client configuration of one role. Throws when the cluster's address is missing.
  package func client(_ role: String) throws(SettingsError) -> KafkaClientConfiguration {
    var servers = bootstrapServers
    if servers == nil, let bootstrapServersFile {
      servers = try SettingsReader.contents(of: bootstrapServersFile, key: "kafka.bootstrapServersFile").trimmingSuffix
      {
        $0.isNewline
      }
    }
    guard let servers, !servers.isEmpty else {
      throw SettingsError(
        "kafka.bootstrapServers",
        "is missing: host:port of a Kafka broker, or the address that `fanfare-dev broker` prints")
    }
    return KafkaClientConfiguration(
      bootstrapServers: servers, clientID: "fanfare-\(role)", properties: properties,
      security: security?.security, profile: profile,
      statistics: KafkaMetrics().record)
  }

  /// Hides the values of the properties, which may contain a password, when the settings are printed.
  package var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "bootstrapServers": bootstrapServers as Any, "bootstrapServersFile": bootstrapServersFile as Any,
        "topics": topics, "partitions": partitions, "replicationFactor": replicationFactor,
        "durabilityCheck": durabilityCheck, "properties": properties.keys.sorted(),
      ])
  }

  /// The topics to create, with the given replication factor.
  package func specifications(replicationFactor: Int) -> [TopicSpecification] {
    topics.created.map { name in
      TopicSpecification(
        name: name, partitions: Int32(topics.partitions(of: name, ofSends: partitions)),
        replicationFactor: Int16(replicationFactor),
        configuration: name == topics.pulse
          ? TopicRequirements.pulse
          : TopicRequirements.settings(replicas: replicationFactor, isDeadLetter: name == topics.deadLetter))
    }
  }
}

extension Topics {
  /// The number of partitions to create for a topic, if the sends topic has `partitions`.
  ///
  /// Each partition of a batch costs work at the broker and at the clients.
  package func partitions(of name: String, ofSends partitions: Int) -> Int {
    // One ledger consumes the status records of several workers, and with fewer partitions a worker writes fewer and
    // larger batches. Few records are deferred.
    if name == status { return max(1, partitions / 4) }
    if name == pulse { return 1 }
    return retries.contains { $0.name == name } ? max(1, partitions / 8) : partitions
  }
}
