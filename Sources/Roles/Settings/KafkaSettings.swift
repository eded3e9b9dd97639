package import FanfareCore
package import RDKafka

/// How to reach Kafka, and what its topics are like.
///
/// - `kafka.bootstrapServers` (text): `host:port`, several separated by commas. This or `kafka.bootstrapServersFile`
///   must be there for a role that talks to Kafka, and not both, unless one is in the environment: it goes over the
///   other in the file.
/// - `kafka.bootstrapServersFile` (text): a file that holds them, as `fanfare-dev broker` writes it; read when the role
///   starts. The api, the worker and the ledger wait half a minute for it.
/// - `kafka.topicPrefix` (text, default `fanfare`): what all topics and consumer groups begin with.
/// - `kafka.retryDelays` (list of whole seconds, 1…86400, default 15, 60, 300): the delays of the retry topics, one
///   topic each; an empty list lets everything wait in the workers' memory.
/// - `kafka.partitions` (1…1000, default 64): of each topic that `fanfare topics create` makes; the
///   status topic has a quarter of it, a retry topic an eighth, rounded down and at least one. So many workers, and a
///   quarter of so many ledgers, share the work.
/// - `kafka.replicationFactor` (1…10, default 3): of each topic that `fanfare topics create` makes.
/// - `kafka.properties` (list of `key=value`): any further librdkafka property, for example
///   `security.protocol=SASL_SSL`.
/// - `kafka.passwordFile` (text): a file with the value of `sasl.password`.
package struct KafkaSettings: Sendable, CustomReflectable {
  let bootstrapServers: String?
  let bootstrapServersFile: String?
  package let topics: Topics
  let partitions: Int
  package let replicationFactor: Int
  let properties: [String: String]
  /// The kind of cluster; no key of the product sets it.
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

  /// The client of one role. Throws when it is not said where the cluster is.
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
        "kafka.bootstrapServers", "is missing: host:port of a Kafka broker, or what `fanfare-dev broker` prints")
    }
    return KafkaClientConfiguration(
      bootstrapServers: servers, clientID: "fanfare-\(role)", properties: properties,
      profile: profile)
  }

  /// Keeps the properties, which hold a password, out of everything that prints the settings.
  package var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "bootstrapServers": bootstrapServers as Any, "bootstrapServersFile": bootstrapServersFile as Any,
        "topics": topics, "partitions": partitions, "replicationFactor": replicationFactor,
        "properties": properties.keys.sorted(),
      ])
  }

  /// The topics to be made, on a cluster of the given replication factor.
  package func specifications(replicationFactor: Int) -> [TopicSpecification] {
    topics.all.map { name in
      var configuration = ["retention.ms": name == topics.deadLetter ? "2592000000" : "604800000"]
      // Whatever the cluster's default is: compaction would leave one send of each user.
      configuration["cleanup.policy"] = "delete"
      // Kafka's default of a megabyte is less than the results of a large send may need.
      configuration["max.message.bytes"] = "\(StatusRecord.maximumRecordSize)"
      // Kafka's default of 1 would let the leader alone acknowledge a send.
      if replicationFactor >= 3 { configuration["min.insync.replicas"] = "2" }
      return TopicSpecification(
        name: name, partitions: Int32(topics.partitions(of: name, ofSends: partitions)),
        replicationFactor: Int16(replicationFactor), configuration: configuration)
    }
  }
}

extension Topics {
  /// How many partitions the topic is made with, where that of the sends has so many. Every partition costs its broker
  /// and its clients something, in each batch that goes to it.
  package func partitions(of name: String, ofSends partitions: Int) -> Int {
    // One ledger takes in what several workers settle, and to each of fewer partitions a worker writes less often and
    // more at a time. What is put off is little.
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
