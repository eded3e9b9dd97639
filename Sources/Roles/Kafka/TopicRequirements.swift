import FanfareCore
import RDKafka

/// A property of a topic that breaks a promise.
package struct TopicFinding: Sendable, Hashable, CustomStringConvertible {
  package let topic: String
  /// The topic's setting, `replicas`, or nil if the topic does not exist.
  package let property: String?
  package let value: String
  package let expectation: String

  package var description: String {
    property.map { "\(topic): \($0) is \(value) and must be \(expectation)" } ?? "\(topic) \(value)"
  }
}

/// The settings that a topic needs so that no acknowledged record is lost.
struct TopicRequirements: Sendable {
  let specification: TopicSpecification

  /// The shortest retention: a backlog, and the records that `fanfare audit` compares, survive a long weekend.
  static let retention: Int64 = 604_800_000

  /// The settings that a topic is created with.
  static func settings(replicas: Int, isDeadLetter: Bool) -> [String: String] {
    var settings = [
      "retention.ms": isDeadLetter ? "2592000000" : "\(retention)",
      // A limit by size can delete records before they are consumed.
      "retention.bytes": "-1",
      // Overrides the cluster's default: compaction would keep only one send of each user.
      "cleanup.policy": "delete",
      // The results of a large send may exceed Kafka's default of a megabyte.
      "max.message.bytes": "\(StatusRecord.maximumRecordSize)",
      // A lagging replica must not become leader: the records that it lacks would be lost.
      "unclean.leader.election.enable": "false",
    ]
    // With Kafka's default of 1 the leader alone could acknowledge a send.
    if replicas >= 3 { settings["min.insync.replicas"] = "2" }
    return settings
  }

  /// The settings of the pulse topic: the last record of each process, and none of processes that ended long ago.
  ///
  /// Nothing in it is needed to keep a promise, and a lost record is replaced within a second.
  static let pulse = [
    "cleanup.policy": "compact,delete", "retention.ms": "86400000", "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
  ]

  /// The properties of a topic that break a promise.
  func findings(_ topic: TopicDescription) -> [TopicFinding] {
    var findings: [TopicFinding] = []
    func expect(_ property: String, _ value: String?, _ expectation: String, _ isMet: (String) -> Bool) {
      // A cluster that does not have the setting does not have the danger either.
      guard let value, !isMet(value) else { return }
      findings.append(TopicFinding(topic: topic.name, property: property, value: value, expectation: expectation))
    }
    func number(_ value: String) -> Int64 { Int64(value) ?? 0 }
    let replicas = Int(specification.replicationFactor)
    expect("replicas", "\(topic.replicas)", "at least \(replicas)") { number($0) >= Int64(replicas) }
    guard case .success(let settings) = topic.settings else { return findings }
    guard specification.configuration != Self.pulse else {
      expect("cleanup.policy", settings["cleanup.policy"]?.value, "compact,delete") {
        $0 == "compact,delete" || $0 == "delete,compact"
      }
      return findings
    }
    let inSync = specification.configuration["min.insync.replicas"] ?? "1"
    expect("min.insync.replicas", settings["min.insync.replicas"]?.value, "at least \(inSync)") {
      number($0) >= number(inSync)
    }
    // Otherwise no record is ever acknowledged.
    expect("min.insync.replicas", settings["min.insync.replicas"]?.value, "at most \(topic.replicas), its replicas") {
      number($0) <= Int64(topic.replicas)
    }
    expect("unclean.leader.election.enable", settings["unclean.leader.election.enable"]?.value, "false") {
      $0 == "false"
    }
    expect("cleanup.policy", settings["cleanup.policy"]?.value, "delete") { $0 == "delete" }
    expect("max.message.bytes", settings["max.message.bytes"]?.value, "at least \(StatusRecord.maximumRecordSize)") {
      number($0) >= Int64(StatusRecord.maximumRecordSize)
    }
    expect("retention.ms", settings["retention.ms"]?.value, "at least \(Self.retention), or -1") {
      $0 == "-1" || number($0) >= Self.retention
    }
    expect("retention.bytes", settings["retention.bytes"]?.value, "-1") { $0 == "-1" }
    return findings
  }
}
