package import RDKafka

/// The partitions this worker owns, each with the offsets of its assignment: decides what may be committed.
///
/// Every assignment has an epoch of its own. What ends after its assignment has ended is recognised by the epoch and moves nothing: the offset of
/// a partition that has another owner by now is never committed. A pure value.
package struct PartitionLedger: Sendable {
  private struct Assignment: Sendable {
    let partition: TopicPartition
    let epoch: UInt32
    var offsets = OffsetTracker()
    /// Whether the group wants it back: no new work of it is begun.
    var isClosing = false
    /// Whether `offsets.position` has moved since it was last handed out.
    var hasAdvanced = false
    /// When the last record taken was written, milliseconds since 1970; nil before the first.
    var lastTimestamp: Int64?
  }

  private var assignments: [Assignment?] = []
  private var slots: [TopicPartition: Int] = [:]
  private var advanced: [Int32] = []
  private var lastEpoch: UInt32 = 0
  /// The slot that the last record was found in: records come in runs of one partition.
  private var lastSlot = -1

  /// A ledger of a worker that owns nothing yet.
  package init() {}

  /// The partitions owned, in no particular order, closing ones included.
  var partitions: [TopicPartition] { Array(slots.keys) }

  /// The largest distance in any partition between the first unsettled record and the last one taken.
  var largestSpan: Int {
    assignments.reduce(0) { max($0, $1?.offsets.span ?? 0) }
  }

  /// Begins a new assignment of the partition. One that is still open is ended: the group has said so.
  package mutating func assign(_ partition: TopicPartition) {
    close(partition)
    lastEpoch += 1
    let assignment = Assignment(partition: partition, epoch: lastEpoch)
    if let slot = assignments.firstIndex(where: { $0 == nil }) {
      assignments[slot] = assignment
      slots[partition] = slot
    } else {
      slots[partition] = assignments.count
      assignments.append(assignment)
    }
  }

  /// Takes note of a record; nil when its partition is not owned, or is being given back.
  package mutating func begin(_ record: ConsumedRecord) -> Origin? {
    guard let slot = slot(of: record), var assignment = take(slot) else { return nil }
    defer { assignments[slot] = assignment }
    guard !assignment.isClosing else { return nil }
    if record.timestamp >= 0 { assignment.lastTimestamp = record.timestamp }
    return Origin(slot: Int32(slot), epoch: assignment.epoch, sequence: assignment.offsets.begin(record.offset))
  }

  /// Counts the record as done: its work has ended and its status record is acknowledged. After the end of its assignment nothing happens.
  package mutating func settle(_ origin: Origin) {
    let slot = Int(origin.slot)
    guard isOwned(origin), var assignment = take(slot) else { return }
    if assignment.offsets.settle(origin.sequence), !assignment.hasAdvanced {
      assignment.hasAdvanced = true
      advanced.append(origin.slot)
    }
    assignments[slot] = assignment
  }

  /// Whether the assignment that the record came with lasts.
  func isOwned(_ origin: Origin) -> Bool {
    assignments[Int(origin.slot)]?.epoch == origin.epoch
  }

  /// Whether the assignment lasts and is not being given back.
  func isOpen(_ origin: Origin) -> Bool {
    guard let assignment = assignments[Int(origin.slot)] else { return false }
    return assignment.epoch == origin.epoch && !assignment.isClosing
  }

  /// Stops taking from the partition; what was begun may still settle.
  mutating func beginClosing(_ partition: TopicPartition) {
    guard let slot = slots[partition] else { return }
    assignments[slot]?.isClosing = true
  }

  /// Ends the assignment. Returns the offset to commit for it, whether handed out before or not; nil when nothing has settled.
  @discardableResult
  mutating func close(_ partition: TopicPartition) -> PartitionOffset? {
    guard let slot = slots.removeValue(forKey: partition), let assignment = assignments[slot] else { return nil }
    assignments[slot] = nil
    return assignment.offsets.position.map { PartitionOffset(partition: partition, offset: $0) }
  }

  /// The positions that have moved since the last call.
  package mutating func takeAdvanced() -> [PartitionOffset] {
    guard !advanced.isEmpty else { return [] }
    var offsets: [PartitionOffset] = []
    offsets.reserveCapacity(advanced.count)
    for slot in advanced {
      guard assignments[Int(slot)]?.hasAdvanced == true else { continue }
      assignments[Int(slot)]?.hasAdvanced = false
      guard let assignment = assignments[Int(slot)], let position = assignment.offsets.position else { continue }
      offsets.append(PartitionOffset(partition: assignment.partition, offset: position))
    }
    advanced.removeAll(keepingCapacity: true)
    return offsets
  }

  /// The position of every partition owned in which something has settled, whether handed out before or not.
  var positions: [PartitionOffset] {
    assignments.compactMap { assignment in
      guard let assignment, let position = assignment.offsets.position else { return nil }
      return PartitionOffset(partition: assignment.partition, offset: position)
    }
  }

  /// When the last record taken from the partition was written, milliseconds since 1970; nil when none was.
  func lastTimestamp(of partition: TopicPartition) -> Int64? {
    slots[partition].flatMap { assignments[$0]?.lastTimestamp }
  }

  /// Moves the assignment out of its slot, so that it is changed in place and its deque is not copied; the caller puts it back.
  private mutating func take(_ slot: Int) -> Assignment? {
    let assignment = assignments[slot]
    assignments[slot] = nil
    return assignment
  }

  private mutating func slot(of record: ConsumedRecord) -> Int? {
    if lastSlot >= 0, let assignment = assignments[lastSlot], assignment.partition.partition == record.partition,
      assignment.partition.topic == record.topic
    {
      return lastSlot
    }
    guard let slot = slots[record.topicPartition] else { return nil }
    lastSlot = slot
    return slot
  }
}
