import RDKafka

/// The evidence that a log still is the one in which offsets were settled.
///
/// A log that lost its end in an unclean election holds other records at the same offsets. They are younger than every
/// record that the last owner had taken, and were appended under a later leader epoch.
struct LogWitness: Hashable, Sendable {
  /// The latest timestamp of a record taken, in milliseconds since 1970; -1 if unknown.
  var newest: Int64 = -1
  /// The highest leader epoch of a record taken; -1 if unknown, as with librdkafka before 2.1.
  var epoch: Int32 = -1

  /// Notes a record that was taken.
  mutating func take(timestamp: Int64, epoch: Int32) {
    newest = max(newest, timestamp)
    self.epoch = max(self.epoch, epoch)
  }

  mutating func formUnion(_ other: LogWitness) { take(timestamp: other.newest, epoch: other.epoch) }

  /// Whether the record can have been in the log when the witness was written.
  func covers(timestamp: Int64, epoch: Int32) -> Bool { timestamp <= newest && (epoch <= self.epoch || self.epoch < 0) }
}

/// The metadata of a commit: the runs settled above the position, and what they are about.
///
/// As text: `settled2:<cluster>:<position>:<newest>:<epoch>:<runs>`. `cluster` is the id of the Kafka cluster (`-` if
/// unknown), `position` the committed offset, `newest` and `epoch` the `LogWitness`, and `runs` the text of
/// `SettledRuns`. A group that was mirrored to another cluster has copied metadata at a translated offset, so metadata
/// of another cluster or position is ignored: its records are sent again.
struct CommitMetadata: Sendable {
  /// Begins every text.
  static let mark = "settled2:"
  private static let longestCluster = 64

  /// Empty if nothing is settled above the position, or if the text is not about this log.
  private(set) var settled = SettledRuns()
  /// nil if the text is not about this log.
  private(set) var witness: LogWitness?

  /// Reads the metadata committed with `position` as a member of a group in `cluster`; nil: the cluster is unknown.
  init(_ text: String?, at position: Int64, cluster: String?) {
    guard let text, text.utf8.count <= SettledRuns.longestText, text.utf8.starts(with: Self.mark.utf8) else { return }
    let fields = text.utf8.dropFirst(Self.mark.utf8.count).split(
      separator: UInt8(ascii: ":"), maxSplits: 4, omittingEmptySubsequences: false
    ).map { String($0) ?? "" }
    guard fields.count == 5, fields[0] == Self.name(of: cluster), fields[1] == String(position),
      let newest = Int64(fields[2]), let epoch = Int32(fields[3])
    else { return }
    settled = SettledRuns(fields[4], from: position)
    witness = LogWitness(newest: newest, epoch: epoch)
  }

  /// The text for runs settled above `position`, which `runs` writes into the bytes that are left of `limit`.
  static func text(
    at position: Int64, cluster: String?, witness: LogWitness, limit: Int, runs: (Int) -> String?
  ) -> String? {
    let head = "\(mark)\(name(of: cluster)):\(position):\(witness.newest):\(witness.epoch):"
    let room = limit - head.utf8.count
    guard room > 0, let runs = runs(room) else { return nil }
    return head + runs
  }

  /// The cluster's id if it can stand in the text.
  private static func name(of cluster: String?) -> String {
    guard let cluster, (1...longestCluster).contains(cluster.utf8.count),
      cluster.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") })
    else { return "-" }
    return cluster
  }
}
