/// What the topics of a deployment are like, all of which the embedded cluster holds in memory: 5 MiB of each
/// partition. That is why the retry topics, in which an outage keeps all that waits, and the status topic, which the
/// audit reads from its beginning, have as many partitions as the sends here.
struct FaultTopics: Sendable {
  /// Of what the rows write in a minute or two. Short delays, so that nobody waits for them; and every pump is one more
  /// group to be formed anew when workers are killed.
  static let few = FaultTopics(retryDelays: [2, 15], partitions: 16)
  /// For what goes round in an outage of many minutes, with delays as long as it then waits, and with room for ten
  /// minutes of it (in 24 partitions there was none: the users are not many enough to lie evenly). In more of them the
  /// batches are smaller, and the embedded cluster, which goes through a partition's log for each, is slower.
  static let many = FaultTopics(retryDelays: [2, 15, 60, 300], partitions: 32)

  /// In seconds.
  let retryDelays: [Int]
  /// Of each topic.
  let partitions: Int32
}
