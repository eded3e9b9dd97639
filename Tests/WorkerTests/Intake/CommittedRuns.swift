import RDKafka

@testable import Worker

extension PartitionOffset {
  /// The runs in the metadata, whichever cluster and position it names, in the form without these.
  var settledRuns: String? {
    guard let metadata else { return nil }
    guard metadata.hasPrefix(CommitMetadata.mark), let runs = metadata.split(separator: ":").last else {
      return metadata
    }
    return SettledRuns.mark + runs
  }

  /// The same position with the runs alone as metadata.
  var withRunsAlone: PartitionOffset { PartitionOffset(partition: partition, offset: offset, metadata: settledRuns) }
}
