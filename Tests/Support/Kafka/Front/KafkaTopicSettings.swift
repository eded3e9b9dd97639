import Synchronization

/// The settings of the topics behind a ``KafkaFront``, with Kafka's defaults.
package final class KafkaTopicSettings: Sendable {
  private static let defaults = [
    "cleanup.policy": "delete", "max.message.bytes": "1048588", "min.insync.replicas": "1",
    "retention.bytes": "-1", "retention.ms": "604800000", "unclean.leader.election.enable": "false",
  ]

  private let own = Mutex<[String: [String: String]]>([:])
  private let refusal = Mutex<Int16>(0)

  package init() {}

  /// The protocol's error number for every question about settings; 0 for none.
  package var error: Int16 {
    get { refusal.withLock { $0 } }
    set { refusal.withLock { $0 = newValue } }
  }

  /// Sets some of a topic's own values.
  package func set(_ values: [String: String], of topic: String) {
    own.withLock { $0[topic, default: [:]].merge(values) { $1 } }
  }

  /// Replaces all of a topic's own values.
  package func replace(with values: [String: String], of topic: String) { own.withLock { $0[topic] = values } }

  /// A topic's own values.
  package func own(of topic: String) -> [String: String] { own.withLock { $0[topic] ?? [:] } }

  func all(of topic: String) -> [(key: String, value: String, isOwn: Bool)] {
    let own = own(of: topic)
    return Self.defaults.merging(own) { $1 }.map { ($0.key, $0.value, own[$0.key] != nil) }
  }
}
