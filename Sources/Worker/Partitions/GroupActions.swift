import Logging
import RDKafka

/// The actions of a member of a consumer group, which `PartitionTracker` decides.
struct GroupActions: Sendable {
  /// Positions to commit; at most one commit is open.
  var commit: [PartitionOffset] = []
  var recoveries: [OffsetQuestion] = []
  /// Rebalances that may take effect.
  var completions: [Rebalance] = []
  /// Whether to leave the group: everything that can be settled and committed before the end has
  /// been.
  var isToLeave = false
}

/// Asks which offsets the group has committed for these partitions.
struct OffsetQuestion: Sendable {
  let number: Int
  let partitions: [TopicPartition]

  /// Asks the group.
  func ask(_ source: any RecordSource, logger: Logger) async -> OffsetAnswer {
    var answer = OffsetAnswer(number: number)
    do throws(RDKafkaError) {
      // First: positions of another cluster must not be believed.
      answer.cluster = try await source.clusterID()
      answer.committed = try await source.committed(partitions)
      answer.kept = try await source.kept(partitions)
    } catch {
      logger.warning(
        "Committed offsets could not be read; settled sends may be repeated",
        metadata: [LogKeys.partitions: "\(partitions.map(\.description))", LogKeys.error: "\(error)"])
    }
    return answer
  }
}

/// The group's answer: its committed positions.
struct OffsetAnswer: Sendable {
  /// The number of the question.
  let number: Int
  /// nil when the group could not be asked.
  var committed: [PartitionOffset]?
  /// The positions it has refused most recently; they may be older.
  var kept: [PartitionOffset] = []
  /// The id of the cluster; nil if it is unknown.
  var cluster: String?
}

/// The end of a commit.
struct CommitEnd: Sendable {
  let offsets: [PartitionOffset]
  /// nil if the broker has the positions.
  let error: RDKafkaError?
}

extension RecordSource {
  /// Commits positions, and returns how that ended.
  func end(ofCommit offsets: [PartitionOffset]) async -> CommitEnd {
    do throws(RDKafkaError) { try await commit(offsets) } catch { return CommitEnd(offsets: offsets, error: error) }
    return CommitEnd(offsets: offsets, error: nil)
  }
}
