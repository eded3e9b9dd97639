package import RDKafka

/// The origin of a record, which tells whether this worker still owns its partition.
package struct Origin: Hashable, Sendable {
  /// The partition's slot in `PartitionOffsets`.
  let slot: Int32
  /// The number of the partition's assignment; a later one is another owner's work.
  let epoch: UInt32
  /// The record's number in the assignment's `OffsetTracker`.
  let sequence: Int64
}

/// The offsets of this worker's partitions: settled records, and positions that may be committed.
///
/// Every assignment has an epoch of its own. A record that settles after its assignment has ended is recognised by the
/// epoch and changes nothing: the offset of a partition that has another owner is never committed.
package struct PartitionOffsets: Sendable {
  private struct Assignment: Sendable {
    let partition: TopicPartition
    /// Whether its records may stay unsettled for long without stopping the reading of others.
    var isApart = false
    /// 0: the slot is vacant.
    var epoch: UInt32
    var offsets = OffsetTracker()
    /// Whether the group has revoked it: no further record of it is begun.
    var isClosing = false
    /// Whether any record has settled since the last `takeChanged`.
    var hasChanged = false
    /// When the last record was written, or, if later, when the partition was last found empty.
    /// Milliseconds since 1970; nil before the first.
    var lastTimestamp: Int64?
  }

  private var assignments: [Assignment] = []
  private var slots: [TopicPartition: Int] = [:]
  private var changed: [Int32] = []
  private var lastEpoch: UInt32 = 0
  /// The id of the cluster, once it is known: commits of another cluster's groups are not about these logs.
  var cluster: String?
  /// The slot of the last record: records come in runs of one partition.
  private var lastSlot = -1
  /// Records that an earlier owner had settled, since the last `takeSkipped`.
  private var skipped = 0

  package init() {}

  /// The partitions owned, in no particular order, closing ones included.
  var partitions: [TopicPartition] { Array(slots.keys) }

  /// The largest distance from the first unsettled record to the last one taken, of partitions not
  /// apart.
  var largestSpan: Int {
    assignments.reduce(0) { $1.isApart ? $0 : max($0, $1.offsets.span) }
  }

  /// The same distance of the partitions that are apart.
  var largestSpanApart: Int {
    assignments.reduce(0) { $1.isApart ? max($0, $1.offsets.span) : $0 }
  }

  /// Begins a new assignment of the partition, and ends the last one.
  /// `isApart`: its records may stay unsettled for long without stopping the reading of others.
  package mutating func assign(_ partition: TopicPartition, isApart: Bool = false) {
    close(partition)
    lastEpoch += 1
    let assignment = Assignment(partition: partition, isApart: isApart, epoch: lastEpoch)
    if let slot = assignments.firstIndex(where: { $0.epoch == 0 }) {
      assignments[slot] = assignment
      slots[partition] = slot
    } else {
      slots[partition] = assignments.count
      assignments.append(assignment)
    }
  }

  /// Takes over the position that an earlier owner has committed, and the settled runs in its
  /// metadata. Has no effect after the first record of the assignment.
  package mutating func resume(_ committed: PartitionOffset) {
    guard let slot = slots[committed.partition] else { return }
    let metadata = CommitMetadata(committed.metadata, at: committed.offset, cluster: cluster)
    assignments[slot].offsets.resume(
      from: committed.offset, settled: metadata.settled, evidence: metadata.witness)
  }

  /// Takes over the offsets that an earlier owner had settled while the group took no commits.
  /// Call after `resume`. Has no effect after the first record of the assignment.
  ///
  /// The position counts even if its metadata names another log: `InterimOffsets` returns it only if it continues the
  /// committed position.
  mutating func learn(_ kept: PartitionOffset) {
    guard let slot = slots[kept.partition] else { return }
    let metadata = CommitMetadata(kept.metadata, at: kept.offset, cluster: cluster)
    assignments[slot].offsets.learn(metadata.settled, below: kept.offset, evidence: metadata.witness)
  }

  /// Begins a record; nil if an earlier owner settled it, or its partition is not owned or is being
  /// given back.
  package mutating func begin(_ record: ConsumedRecord) -> Origin? {
    guard let slot = slot(of: record), !assignments[slot].isClosing else { return nil }
    if record.timestamp >= 0 { assignments[slot].lastTimestamp = record.timestamp }
    if assignments[slot].offsets.isOfNewLog(record.offset) { note(slot) }
    guard
      let sequence = assignments[slot].offsets.begin(
        record.offset, timestamp: record.timestamp, epoch: record.leaderEpoch)
    else {
      skipped += 1
      note(slot)
      return nil
    }
    return Origin(slot: Int32(slot), epoch: assignments[slot].epoch, sequence: sequence)
  }

  /// Settles a record whose work has ended and whose status record is acknowledged.
  /// Has no effect after the end of its assignment.
  package mutating func settle(_ origin: Origin) {
    let slot = Int(origin.slot)
    guard isOwned(origin) else { return }
    if assignments[slot].offsets.settle(origin.sequence) { note(slot) }
  }

  /// Whether the record's assignment still lasts.
  func isOwned(_ origin: Origin) -> Bool {
    origin.epoch != 0 && assignments[Int(origin.slot)].epoch == origin.epoch
  }

  /// The partition of a record whose assignment lasts; nil after its end.
  func partition(of origin: Origin) -> TopicPartition? {
    isOwned(origin) ? assignments[Int(origin.slot)].partition : nil
  }

  /// The offset of an unsettled record whose assignment lasts; nil otherwise.
  func offset(of origin: Origin) -> Int64? {
    isOwned(origin) ? assignments[Int(origin.slot)].offsets.offset(of: origin.sequence) : nil
  }

  /// Whether the assignment lasts and is not being given back.
  func isOpen(_ origin: Origin) -> Bool {
    isOwned(origin) && !assignments[Int(origin.slot)].isClosing
  }

  /// Stops taking from the partition; records begun may still settle.
  mutating func beginClosing(_ partition: TopicPartition) {
    guard let slot = slots[partition] else { return }
    assignments[slot].isClosing = true
  }

  /// Ends the assignment, and forgets positions that are not handed out for a commit.
  package mutating func close(_ partition: TopicPartition) {
    guard let slot = slots.removeValue(forKey: partition) else { return }
    if assignments[slot].hasChanged { changed.removeAll { $0 == slot } }
    assignments[slot] = Assignment(partition: partition, epoch: 0)
  }

  /// Whether any record has settled since the last `takeChanged`.
  var hasChanges: Bool { !changed.isEmpty }

  /// Whether any record has settled in one of the partitions since the last `takeChanged`.
  func hasChanges(in partitions: [TopicPartition]) -> Bool {
    hasChanges && partitions.contains { slots[$0].map { assignments[$0].hasChanged } ?? false }
  }

  /// The positions to commit of the partitions with records settled since the last call, each with
  /// the runs settled above it in at most `metadataLimit` bytes. `restore` them if the commit fails.
  ///
  /// With `isWitnessed`, while the group takes no commits, every position has the witness of its records: the next
  /// owner takes those below a kept position for runs, and leaves them to the owner behind it.
  package mutating func takeChanged(metadataLimit: Int, isWitnessed: Bool = false) -> [PartitionOffset] {
    guard hasChanges else { return [] }
    var offsets: [PartitionOffset] = []
    offsets.reserveCapacity(changed.count)
    for slot in changed.lazy.map(Int.init) {
      assignments[slot].hasChanged = false
      guard let position = assignments[slot].offsets.committable(limit: 0)?.position else { continue }
      var metadata: String?
      // Usually there is none: nothing is allocated then.
      if isWitnessed || assignments[slot].offsets.hasSettledAbove {
        metadata = CommitMetadata.text(
          at: position, cluster: cluster, witness: assignments[slot].offsets.witness, limit: metadataLimit
        ) { assignments[slot].offsets.committable(limit: $0)?.metadata ?? (isWitnessed ? "" : nil) }
      }
      offsets.append(PartitionOffset(partition: assignments[slot].partition, offset: position, metadata: metadata))
    }
    changed.removeAll(keepingCapacity: true)
    return offsets
  }

  /// Marks the partitions of a failed commit as changed, if still owned; their current positions
  /// are handed out next.
  mutating func restore(_ offsets: [PartitionOffset]) {
    for offset in offsets {
      if let slot = slots[offset.partition] { note(slot) }
    }
  }

  /// Marks the partitions that are apart as changed: their positions are committed again.
  mutating func renewApart() {
    for slot in assignments.indices where assignments[slot].epoch != 0 && assignments[slot].isApart {
      assignments[slot].offsets.renew()
      note(slot)
    }
  }

  /// The number of records since the last call that an earlier owner had settled.
  mutating func takeSkipped() -> Int {
    defer { skipped = 0 }
    return skipped
  }

  /// Notes that the partition had no lag at `moment`, in milliseconds since 1970: later records
  /// were written later.
  mutating func catchUp(_ partition: TopicPartition, at moment: Int64) {
    guard let slot = slots[partition] else { return }
    assignments[slot].lastTimestamp = max(assignments[slot].lastTimestamp ?? moment, moment)
  }

  /// When the partition's oldest unsettled record was written, to a second, in milliseconds since
  /// 1970. With all records settled: the lower bound for later records. nil if neither is known.
  func oldestTimestamp(of partition: TopicPartition) -> Int64? {
    slots[partition].flatMap { assignments[$0].offsets.oldestTimestamp ?? assignments[$0].lastTimestamp }
  }

  private mutating func note(_ slot: Int) {
    guard !assignments[slot].hasChanged else { return }
    assignments[slot].hasChanged = true
    changed.append(Int32(slot))
  }

  private mutating func slot(of record: ConsumedRecord) -> Int? {
    if lastSlot >= 0, assignments[lastSlot].epoch != 0, assignments[lastSlot].partition.partition == record.partition,
      assignments[lastSlot].partition.topic == record.topic
    {
      return lastSlot
    }
    guard let slot = slots[record.topicPartition] else { return nil }
    lastSlot = slot
    return slot
  }

  /// Whether the record has settled in the assignment it came with.
  func isSettled(_ origin: Origin) -> Bool {
    isOwned(origin) && assignments[Int(origin.slot)].offsets.isSettled(origin.sequence)
  }

  func owns(_ partition: TopicPartition) -> Bool { slots[partition] != nil }
  func isOpen(_ partition: TopicPartition) -> Bool { slots[partition].map { !assignments[$0].isClosing } ?? false }

  func checkInvariants() -> [String] {
    var violations: [String] = []
    for (partition, slot) in slots where assignments[slot].epoch == 0 || assignments[slot].partition != partition {
      violations.append("\(partition) has no assignment")
    }
    if assignments.count(where: { $0.epoch != 0 }) != slots.count { violations.append("an assignment has no slot") }
    let flagged = assignments.indices.filter { assignments[$0].hasChanged }
    if Set(changed.map(Int.init)) != Set(flagged) || changed.count != flagged.count {
      violations.append("partitions \(flagged) have changed, and \(changed) are noted")
    }
    for assignment in assignments { violations += assignment.offsets.checkInvariants() }
    return violations
  }
}
