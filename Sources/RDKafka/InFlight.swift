/// The submissions with unsettled records.
/// A value: its owner holds the lock and performs the returned actions.
struct InFlight: ~Copyable {
  /// Called once with the results in the order of the submission's records.
  typealias Completion = @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void

  /// A submission without unsettled records, to be completed outside the lock.
  struct Finished: Sendable {
    var results: [Result<RecordPosition, RDKafkaError>]
    var completion: Completion
  }

  private struct Slot {
    /// The results; an unsettled record has a position with the offset ``unsettled``.
    var results: [Result<RecordPosition, RDKafkaError>] = []
    /// The number of unsettled records, plus one until the submitting thread has submitted all of
    /// them.
    var remaining = 0
    var generation = 0
    var completion: Completion?
  }

  private static let unsettled = Int64.min

  private var slots: [Slot] = []
  private var free: [Int] = []
  private var finished: [Finished] = []
  /// The number of unsettled records.
  private(set) var count = 0
  /// The total number of failed records.
  private(set) var failed = 0

  /// Opens a submission and returns its slot.
  mutating func open(_ records: [ProducerRecord], generation: Int, completion: @escaping Completion) -> Int {
    let slot = free.popLast() ?? slots.count
    if slot == slots.count { slots.append(Slot()) }
    slots[slot] = Slot(
      results: records.map { .success(RecordPosition(topic: $0.topic, partition: -1, offset: Self.unsettled)) },
      remaining: records.count + 1, generation: generation, completion: completion)
    count += records.count
    return slot
  }

  /// Notes that the submitting thread has submitted all records except the refused ones.
  ///
  /// - Returns: Whether there are finished submissions that no further delivery will complete: all records of this one
  ///   were refused, or settled before this call.
  mutating func handedOver(_ slot: Int, refused: [(index: Int, error: RDKafkaError)]) -> Bool {
    for (index, error) in refused { fail(slot, index, error) }
    countDown(slot)
    return !finished.isEmpty
  }

  /// Settles one record.
  ///
  /// - Returns: Its topic; nil if it was given up before.
  @discardableResult
  mutating func settle(_ delivery: Delivery) -> String? {
    let (slot, index) = (delivery.ticket.slot, delivery.ticket.index)
    guard let topic = topicOfUnsettled(slot, index) else { return nil }
    if delivery.isAcknowledged {
      slots[slot].results[index] = .success(
        RecordPosition(topic: topic, partition: delivery.partition, offset: delivery.offset))
      count -= 1
      countDown(slot)
    } else {
      fail(slot, index, RDKafkaError(delivery: delivery, topic: topic))
    }
    return topic
  }

  /// Gives up all records of handles up to `generation`.
  ///
  /// - Returns: The number of records.
  mutating func abandon(upTo generation: Int, error: RDKafkaError) -> Int {
    let before = count
    for slot in slots.indices where slots[slot].completion != nil && slots[slot].generation <= generation {
      for index in slots[slot].results.indices { fail(slot, index, error) }
    }
    return before - count
  }

  /// Whether there are unsettled records of handles up to `generation`.
  func hasRecords(upTo generation: Int) -> Bool {
    slots.contains { $0.completion != nil && $0.generation <= generation }
  }

  /// Takes the submissions that were finished since the last call.
  mutating func takeFinished() -> [Finished] {
    guard !finished.isEmpty else { return [] }
    defer { finished = [] }
    return finished
  }

  /// The record's topic; nil once it is settled.
  private func topicOfUnsettled(_ slot: Int, _ index: Int) -> String? {
    guard slots.indices.contains(slot), slots[slot].results.indices.contains(index),
      case .success(let position) = slots[slot].results[index], position.offset == Self.unsettled
    else { return nil }
    return position.topic
  }

  private mutating func fail(_ slot: Int, _ index: Int, _ error: RDKafkaError) {
    guard topicOfUnsettled(slot, index) != nil else { return }
    slots[slot].results[index] = .failure(error)
    count -= 1
    failed += 1
    countDown(slot)
  }

  private mutating func countDown(_ slot: Int) {
    slots[slot].remaining -= 1
    guard slots[slot].remaining == 0, let completion = slots[slot].completion else { return }
    finished.append(Finished(results: slots[slot].results, completion: completion))
    slots[slot] = Slot()
    free.append(slot)
  }
}
