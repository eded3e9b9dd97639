/// What became of one topic that was to be created.
package struct TopicCreation: Sendable {
  /// The topic's name.
  package var topic: String
  /// What became of it.
  package var outcome: Outcome

  /// The possible ends.
  package enum Outcome: Sendable, Hashable {
    /// It is new.
    case created
    /// It was there already, with this many partitions, which are enough.
    case existed(partitions: Int32)
    /// It is not there, or not as specified (`conflict`).
    case failed(RDKafkaError)
  }
}
