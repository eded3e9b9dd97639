package import FanfareCore
package import RDKafka

/// The connection to Kafka, and the properties of the topics.
///
/// - `kafka.bootstrapServers` (text): `host:port`, several separated by commas. A role that uses Kafka needs this or
///   `kafka.bootstrapServersFile`. Both together are an error, except that a key in the environment overrides the other
///   one in the file.
/// - `kafka.bootstrapServersFile` (text): a file with these addresses, as `fanfare-dev broker` writes it. A role reads
///   it at its start; the api, the worker and the ledger wait half a minute for it.
/// - `kafka.topicPrefix` (text, default `fanfare`): the beginning of the names of all topics and consumer groups.
/// - `kafka.retryDelays` (list of whole seconds, 1…86400, default 15, 60, 300): the delays of the retry topics, one
///   topic each. With an empty list all retries wait in the workers' memory.
/// - `kafka.ingressTopics` (true or false, default false): whether each hub has an ingress topic,
///   `<kafka.topicPrefix>.sends.<hub>`, to which front ends and other backends produce its sends. Workers enforce the
///   hub and move the sends to the sends topic.
/// - `kafka.partitions` (1…1000, default 64): the partitions of each topic that `fanfare topics create` makes. Only the
///   status topic has a quarter of them and a retry topic an eighth, rounded down and at least one, and the pulse topic
///   has one. This many workers, and a quarter of this many ledgers, can share the work.
/// - `kafka.replicationFactor` (1…10, default 3): the replicas of each topic that `fanfare topics create` makes.
/// - `kafka.durabilityCheck` (`refuse`, `warn` or `off`, default `refuse`): whether a role starts when the topics can lose
///   acknowledged sends, because of too few replicas (fewer than `kafka.replicationFactor`) or of other settings.
/// - `kafka.security.…`: TLS and authentication; see ``KafkaSecuritySettings``.
/// - `kafka.properties` (list of `key=value`): further librdkafka properties, for example `socket.timeout.ms=30000`.
/// - `kafka.passwordFile` (text): a file with the value of the property `sasl.password`.
package struct KafkaSettings: Sendable, CustomReflectable {
  package var bootstrapServers: String?
  let bootstrapServersFile: String?
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

  init(hubs: [HubName], from reader: SettingsReader) throws(SettingsError) {
    (bootstrapServers, bootstrapServersFile) = try reader.oneOf("kafka.bootstrapServers", "kafka.bootstrapServersFile")
    let prefix = try reader.string("kafka.topicPrefix", default: "fanfare")
    let isSound = prefix.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard isSound, prefix.utf8.count <= 100 else {
      throw SettingsError("kafka.topicPrefix", "must be 1 to 100 characters of A–Z a–z 0–9 . _ -")
    }
    var topics = Topics(
      prefix: prefix,
      retryDelays: try reader.ints("kafka.retryDelays", default: Topics.defaultRetryDelays, in: 1...86_400, atMost: 10))
    if try reader.bool("kafka.ingressTopics", default: false) { topics.ingressHubs = Set(hubs) }
    self.topics = topics
    partitions = try reader.int("kafka.partitions", default: 64, in: 1...1000)
    replicationFactor = try reader.int("kafka.replicationFactor", default: 3, in: 1...10)
    durabilityCheck = try reader.choice("kafka.durabilityCheck", default: .refuse)
    var properties = try reader.pairs("kafka.properties")
    let passwordFile = try reader.secretFile(at: "kafka.passwordFile")
    if let passwordFile { properties["sasl.password"] = try passwordFile.text() }
    self.properties = properties
    security = try KafkaSecuritySettings(from: reader)
    if security != nil {
      guard passwordFile == nil else {
        throw SettingsError(
          "kafka.passwordFile", "must not be given together with kafka.security; use its passwordFile")
      }
      if let name = properties.keys.sorted().first(where: KafkaSecuritySettings.replacedProperties.contains) {
        throw SettingsError("kafka.properties", "must not contain \(name) together with kafka.security")
      }
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

extension String {
  /// The text without the characters at its end that satisfy the condition.
  package func trimmingSuffix(while condition: (Character) -> Bool) -> String {
    var rest = self[...]
    while let last = rest.last, condition(last) { rest.removeLast() }
    return String(rest)
  }
}
