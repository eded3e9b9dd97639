package import RDKafka

/// The partitions this worker owns, each with the offsets of its assignment: decides what may be committed, and what is
/// done already.
///
/// Every assignment has an epoch of its own. What ends after its assignment has ended is recognised by the epoch and
/// moves nothing: the offset of a partition that has another owner by now is never committed. A pure value.
package struct PartitionLedger: Sendable {
  private struct Assignment: Sendable {
    let partition: TopicPartition
    /// Whether what it holds may stay unsettled for long, and keeps nothing else from being read.
    var isApart = false
    /// 0: the slot is vacant.
    var epoch: UInt32
    var offsets = OffsetTracker()
    /// Whether the group wants it back: no new work of it is begun.
    var isClosing = false
    /// Whether anything has settled since what is to be committed was last handed out.
    var hasChanged = false
    /// When the last record taken was written, or, if that was later, when last nothing was left to be taken;
    /// milliseconds since 1970, nil before the first.
    var lastTimestamp: Int64?
  }

  private var assignments: [Assignment] = []
  private var slots: [TopicPartition: Int] = [:]
  private var changed: [Int32] = []
  private var lastEpoch: UInt32 = 0
  /// The slot that the last record was found in: records come in runs of one partition.
  private var lastSlot = -1
  /// Records that an earlier owner had settled, since the last `takeSkipped`.
  private var skipped = 0

  /// A ledger of a worker that owns nothing yet.
  package init() {}

  /// The partitions owned, in no particular order, closing ones included.
  var partitions: [TopicPartition] { Array(slots.keys) }

  /// The largest distance in any partition that is not apart between the first unsettled record and the last one taken.
  var largestSpan: Int {
    assignments.reduce(0) { $1.isApart ? $0 : max($0, $1.offsets.span) }
  }

  /// The same of those that are apart.
  var largestSpanApart: Int {
    assignments.reduce(0) { $1.isApart ? max($0, $1.offsets.span) : $0 }
  }

  /// Begins a new assignment of the partition. One that is still open is ended: the group has said so. `isApart`: what
  /// it holds may stay unsettled for long, and keeps nothing else from being read.
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

  /// Takes over what an earlier owner of the partition has committed and, in the metadata, left to know. Changes
  /// nothing once a record of the assignment has come.
  package mutating func resume(_ committed: PartitionOffset) {
    guard let slot = slots[committed.partition] else { return }
    let settled = SettledRuns(committed.metadata, from: committed.offset)
    assignments[slot].offsets.resume(from: committed.offset, settled: settled)
  }

  /// Takes over what an earlier owner of the partition had settled when the group refused its position. After `resume`,
  /// if that is called at all; changes nothing once a record of the assignment has come.
  mutating func learn(_ kept: PartitionOffset) {
    guard let slot = slots[kept.partition] else { return }
    assignments[slot].offsets.learn(SettledRuns(kept.metadata, from: kept.offset), below: kept.offset)
  }

  /// Takes note of a record that is to be worked on; nil when its partition is not owned, or is being given back, or an
  /// earlier owner has settled the record.
  package mutating func begin(_ record: ConsumedRecord) -> Origin? {
    guard let slot = slot(of: record), !assignments[slot].isClosing else { return nil }
    if record.timestamp >= 0 { assignments[slot].lastTimestamp = record.timestamp }
    if assignments[slot].offsets.isAnew(record.offset) { note(slot) }
    guard let sequence = assignments[slot].offsets.begin(record.offset, timestamp: record.timestamp) else {
      skipped += 1
      note(slot)
      return nil
    }
    return Origin(slot: Int32(slot), epoch: assignments[slot].epoch, sequence: sequence)
  }

  /// Counts the record as done: its work has ended and its status record is acknowledged. After the end of its
  /// assignment nothing happens.
  package mutating func settle(_ origin: Origin) {
    let slot = Int(origin.slot)
    guard isOwned(origin) else { return }
    if assignments[slot].offsets.settle(origin.sequence) { note(slot) }
  }

  /// Whether the assignment that the record came with lasts.
  func isOwned(_ origin: Origin) -> Bool {
    origin.epoch != 0 && assignments[Int(origin.slot)].epoch == origin.epoch
  }

  /// The partition of a record whose assignment lasts; nil after its end.
  func partition(of origin: Origin) -> TopicPartition? {
    isOwned(origin) ? assignments[Int(origin.slot)].partition : nil
  }

  /// Whether the assignment lasts and is not being given back.
  func isOpen(_ origin: Origin) -> Bool {
    isOwned(origin) && !assignments[Int(origin.slot)].isClosing
  }

  /// Stops taking from the partition; what was begun may still settle.
  mutating func beginClosing(_ partition: TopicPartition) {
    guard let slot = slots[partition] else { return }
    assignments[slot].isClosing = true
  }

  /// Ends the assignment; what it has to commit and has not handed out is forgotten.
  package mutating func close(_ partition: TopicPartition) {
    guard let slot = slots.removeValue(forKey: partition) else { return }
    if assignments[slot].hasChanged { changed.removeAll { $0 == slot } }
    assignments[slot] = Assignment(partition: partition, epoch: 0)
  }

  /// Whether anything has settled since the last `takeChanged`.
  var hasChanges: Bool { !changed.isEmpty }

  /// Whether anything has settled in one of the partitions since the last `takeChanged`.
  func hasChanges(in partitions: [TopicPartition]) -> Bool {
    hasChanges && partitions.contains { slots[$0].map { assignments[$0].hasChanged } ?? false }
  }

  /// What to commit for the partitions in which something has settled since the last call: positions, each with what is
  /// settled above it in at most `metadataLimit` bytes. If it cannot be committed, `restore` it.
  package mutating func takeChanged(metadataLimit: Int) -> [PartitionOffset] {
    guard hasChanges else { return [] }
    var offsets: [PartitionOffset] = []
    offsets.reserveCapacity(changed.count)
    for slot in changed.lazy.map(Int.init) {
      assignments[slot].hasChanged = false
      guard let end = assignments[slot].offsets.committable(limit: metadataLimit) else { continue }
      offsets.append(
        PartitionOffset(partition: assignments[slot].partition, offset: end.position, metadata: end.metadata))
    }
    changed.removeAll(keepingCapacity: true)
    return offsets
  }

  /// What was handed out was not committed: the partitions that are still owned are handed out again, as they are then.
  mutating func restore(_ offsets: [PartitionOffset]) {
    for offset in offsets {
      if let slot = slots[offset.partition] { note(slot) }
    }
  }

  /// How many records an earlier owner had settled, of those that have come since the last call.
  mutating func takeSkipped() -> Int {
    defer { skipped = 0 }
    return skipped
  }

  /// At that moment, in milliseconds since 1970, nothing of the partition is left to be taken or settled: what waits
  /// later was written later.
  mutating func catchUp(_ partition: TopicPartition, at moment: Int64) {
    guard let slot = slots[partition] else { return }
    assignments[slot].lastTimestamp = max(assignments[slot].lastTimestamp ?? moment, moment)
  }

  /// When the oldest record of the partition that is not settled was written, give or take a second, in milliseconds
  /// since 1970. Where all that were taken are settled, when the last of them was, or nothing waited last: what waits
  /// by now is no older. nil when neither is known.
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
}
