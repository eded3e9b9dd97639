import Synchronization

/// The settings of the topics behind a ``KafkaFront``, with Kafka's defaults.
package final class KafkaTopicSettings: Sendable {
  private static let defaults = [
    "cleanup.policy": "delete", "max.message.bytes": "1048588", "min.insync.replicas": "1",
    "retention.bytes": "-1", "retention.ms": "604800000", "unclean.leader.election.enable": "false",
  ]

  private let own = Mutex<[String: [String: String]]>([:])
  private let refusal = Mutex<Int16>(0)
  private let holds = Mutex(false)
  private let late = Mutex<(answers: Int, creations: [@Sendable () throws -> Void])>((0, []))

  package init() {}

  /// The protocol's error number for every question about settings; 0 for none.
  package var error: Int16 {
    get { refusal.withLock { $0 } }
    set { refusal.withLock { $0 = newValue } }
  }

  /// Whether records are not acknowledged, as while a follower is dead. A broker answers the requests of a connection
  /// one after another, so those behind a record have to wait, too.
  package var holdsAcknowledgements: Bool {
    get { holds.withLock(\.self) }
    set { holds.withLock { $0 = newValue } }
  }

  /// Metadata as those of a cluster that has just been started: the next so many answers lack topics that are created
  /// from now on.
  package func delayTopics(byAnswers count: Int) { late.withLock { $0.answers = count } }

  /// Keeps the creation of a topic until metadata may show it. Returns whether they may not yet.
  package func postpone(_ creation: @escaping @Sendable () throws -> Void) -> Bool {
    late.withLock { late in
      if late.answers > 0 { late.creations.append(creation) }
      return late.answers > 0
    }
  }

  /// Counts a request for metadata, and creates the postponed topics after the last one without them.
  func countMetadata() throws {
    let due = late.withLock { late -> [@Sendable () throws -> Void] in
      guard !late.creations.isEmpty else { return [] }
      guard late.answers == 0 else {
        late.answers -= 1
        return []
      }
      defer { late.creations = [] }
      return late.creations
    }
    for creation in due { try creation() }
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
