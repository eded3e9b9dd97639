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
/// - `kafka.partitions` (1…1000, default 64): the partitions of each topic that `fanfare topics create` makes. Only the
///   status topic has a quarter of them and a retry topic an eighth, rounded down and at least one. This many workers,
///   and a quarter of this many ledgers, can share the work.
/// - `kafka.replicationFactor` (1…10, default 3): the replicas of each topic that `fanfare topics create` makes.
/// - `kafka.properties` (list of `key=value`): further librdkafka properties, for example `security.protocol=SASL_SSL`.
/// - `kafka.passwordFile` (text): a file with the value of `sasl.password`.
package struct KafkaSettings: Sendable, CustomReflectable {
  let bootstrapServers: String?
  let bootstrapServersFile: String?
  package let topics: Topics
  let partitions: Int
  package let replicationFactor: Int
  let properties: [String: String]
  /// The kind of cluster. No configuration key of the product sets it.
  package var profile = ClusterProfile()

  init(from reader: SettingsReader) throws(SettingsError) {
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
    topics = Topics(
      prefix: prefix,
      retryDelays: try reader.ints("kafka.retryDelays", default: Topics.defaultRetryDelays, in: 1...86_400, atMost: 10))
    partitions = try reader.int("kafka.partitions", default: 64, in: 1...1000)
    replicationFactor = try reader.int("kafka.replicationFactor", default: 3, in: 1...10)
    var properties: [String: String] = [:]
    for property in try reader.strings("kafka.properties") {
      guard let sign = property.firstIndex(of: "="), sign > property.startIndex else {
        throw SettingsError("kafka.properties", "must be a list of texts of the form key=value")
      }
      properties[String(property[..<sign])] = String(property[property.index(after: sign)...])
    }
    if let password = try reader.contents(ofFileAt: "kafka.passwordFile") {
      properties["sasl.password"] = password.trimmingSuffix { $0.isNewline }
    }
    self.properties = properties
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
      profile: profile)
  }

  /// Hides the values of the properties, which may contain a password, when the settings are printed.
  package var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "bootstrapServers": bootstrapServers as Any, "bootstrapServersFile": bootstrapServersFile as Any,
        "topics": topics, "partitions": partitions, "replicationFactor": replicationFactor,
        "properties": properties.keys.sorted(),
      ])
  }

  /// The topics to create, with the given replication factor.
  package func specifications(replicationFactor: Int) -> [TopicSpecification] {
    topics.all.map { name in
      var configuration = ["retention.ms": name == topics.deadLetter ? "2592000000" : "604800000"]
      // Overrides the cluster's default: compaction would keep only one send of each user.
      configuration["cleanup.policy"] = "delete"
      // The results of a large send may exceed Kafka's default of a megabyte.
      configuration["max.message.bytes"] = "\(StatusRecord.maximumRecordSize)"
      // With Kafka's default of 1 the leader alone could acknowledge a send.
      if replicationFactor >= 3 { configuration["min.insync.replicas"] = "2" }
      return TopicSpecification(
        name: name, partitions: Int32(topics.partitions(of: name, ofSends: partitions)),
        replicationFactor: Int16(replicationFactor), configuration: configuration)
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
