/// The submissions with unsettled records.
/// A value: its owner holds the lock and performs the returned actions.
struct InFlight: ~Copyable {
  /// Called with the results of the submission's records from the index on, in their order.
  typealias Completion = @Sendable (_ index: Int, _ results: [Result<RecordPosition, RDKafkaError>]) -> Void

  /// When a submission is completed.
  enum Manner {
    /// Once, with all results.
    case whole
    /// For each record on its own, as soon as it is settled.
    case each
  }

  /// Settled records, to be completed outside the lock.
  struct Finished: Sendable {
    var index = 0
    var results: [Result<RecordPosition, RDKafkaError>]
    fileprivate var completion: Completion

    func complete() { completion(index, results) }
  }

  private struct Slot {
    /// The results; an unsettled record has a position with the offset ``unsettled``.
    var results: [Result<RecordPosition, RDKafkaError>] = []
    /// The number of unsettled records, plus one until the submitting thread has submitted all of
    /// them.
    var remaining = 0
    var generation = 0
    var manner = Manner.whole
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
  mutating func open(
    _ records: [ProducerRecord], generation: Int, completing manner: Manner = .whole, completion: @escaping Completion
  ) -> Int {
    let slot = free.popLast() ?? slots.count
    if slot == slots.count { slots.append(Slot()) }
    slots[slot] = Slot(
      results: records.map { .success(RecordPosition(topic: $0.topic, partition: -1, offset: Self.unsettled)) },
      remaining: records.count + 1, generation: generation, manner: manner, completion: completion)
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
    let (slot, index) = (delivery.tag.slot, delivery.tag.index)
    guard let topic = topicOfUnsettled(slot, index) else { return nil }
    if delivery.isAcknowledged {
      let position = RecordPosition(topic: topic, partition: delivery.partition, offset: delivery.offset)
      settle(slot, index, .success(position))
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
    failed += 1
    settle(slot, index, .failure(error))
  }

  private mutating func settle(_ slot: Int, _ index: Int, _ result: Result<RecordPosition, RDKafkaError>) {
    slots[slot].results[index] = result
    count -= 1
    if case .each = slots[slot].manner, let completion = slots[slot].completion {
      finished.append(Finished(index: index, results: [result], completion: completion))
    }
    countDown(slot)
  }

  private mutating func countDown(_ slot: Int) {
    slots[slot].remaining -= 1
    guard slots[slot].remaining == 0, let completion = slots[slot].completion else { return }
    if case .whole = slots[slot].manner {
      finished.append(Finished(results: slots[slot].results, completion: completion))
    }
    slots[slot] = Slot()
    free.append(slot)
  }
}
