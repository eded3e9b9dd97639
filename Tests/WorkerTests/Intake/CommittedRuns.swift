import RDKafka

@testable import Worker

extension PartitionOffset {
  /// A position with settled runs above it that are believed in any log.
  init(_ partition: TopicPartition, _ offset: Int64, settled runs: String) {
    self.init(
      partition: partition, offset: offset,
      metadata: CommitMetadata.mark + "-:\(offset):\(Int64.max):-1:\(runs)")
  }

  /// The runs in the metadata, whichever cluster and position it names.
  var settledRuns: String? { metadata?.split(separator: ":").last.map(String.init) }

  /// The same position with the runs alone as metadata.
  var withRunsAlone: PartitionOffset { PartitionOffset(partition: partition, offset: offset, metadata: settledRuns) }
}
