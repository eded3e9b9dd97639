/// The submissions whose records are not all settled. A value: whoever holds it has the lock, and performs what it
/// returns.
struct InFlight: ~Copyable {
  /// Called once with the results, in the order of the submission's records.
  typealias Completion = @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void

  /// A submission all of whose records are settled; to be completed outside the lock.
  struct Finished: Sendable {
    /// In the order of the submission's records.
    var results: [Result<RecordPosition, RDKafkaError>]
    /// To be called with them.
    var completion: Completion
  }

  private struct Slot {
    /// Filled in as records are settled; before, a position whose `offset` is ``unsettled``.
    var results: [Result<RecordPosition, RDKafkaError>] = []
    /// Records not yet settled, plus one while the submitting thread is still handing them over.
    var remaining = 0
    var generation = 0
    var completion: Completion?
  }

  private static let unsettled = Int64.min

  private var slots: [Slot] = []
  private var free: [Int] = []
  private var finished: [Finished] = []
  /// Records not yet settled.
  private(set) var count = 0
  /// Records that have failed, ever.
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

  /// The submitting thread has handed over all records but these.
  ///
  /// - Returns: Whether there are submissions to be taken of which no further delivery will tell: this one, whose
  ///   records were all refused, or settled before their submitter came to say this.
  mutating func handedOver(_ slot: Int, refused: [(index: Int, error: RDKafkaError)]) -> Bool {
    for (index, error) in refused { fail(slot, index, error) }
    countDown(slot)
    return !finished.isEmpty
  }

  /// Takes note of what the broker said about one record.
  ///
  /// - Returns: Its topic, or nil if it was given up before.
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

  /// Gives up every record of handles up to `generation` of which no word will come any more.
  ///
  /// - Returns: How many.
  mutating func abandon(upTo generation: Int, error: RDKafkaError) -> Int {
    let before = count
    for slot in slots.indices where slots[slot].completion != nil && slots[slot].generation <= generation {
      for index in slots[slot].results.indices { fail(slot, index, error) }
    }
    return before - count
  }

  /// Whether records of handles up to `generation` are still unsettled.
  func hasRecords(upTo generation: Int) -> Bool {
    slots.contains { $0.completion != nil && $0.generation <= generation }
  }

  /// Takes the submissions which have been settled since the last call.
  mutating func takeFinished() -> [Finished] {
    guard !finished.isEmpty else { return [] }
    defer { finished = [] }
    return finished
  }

  /// Where the record goes; nil once it is settled.
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
