import CRDKafka
import Synchronization

/// A handle for consuming in a group.
///
/// The queue of each assigned partition is redirected to ``records`` or ``pausableRecords``, or read by itself.
/// Rebalances and errors are served from the consumer's queue at all times, and records are taken only when the
/// application has credit. (Pausing partitions would drop fetched records, and before 2.1 may lose some.)
final class ConsumerHandle: Sendable {
  let handle: Handle
  /// Wakes the consumer's thread for entries on a queue and for requests of the application.
  let wakeUp: WakeUp
  /// The records of assigned partitions, except those of pausable topics.
  let records: Queue
  /// The records of pausable topics.
  let pausableRecords: Queue
  private let pausableTopics: Set<String>
  private let events: Queue
  private let closing: Queue

  /// Creates a handle without contacting a broker. `joinState` is told when it joins its group.
  init(properties: PropertySet, pausableTopics: Set<String>, joinState: JoinState?) throws(RDKafkaError) {
    let events = RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG
    handle = try Handle(kind: .consumer, properties: properties, events: events, joinState: joinState)
    wakeUp = try WakeUp()
    self.events = try Queue.consumer(of: handle, wakeUp: wakeUp)
    records = try Queue.make(on: handle, wakeUp: wakeUp)
    pausableRecords = try Queue.make(on: handle, wakeUp: wakeUp)
    self.pausableTopics = pausableTopics
    closing = try Queue.make(on: handle, wakeUp: wakeUp)
  }

  /// Whether a request that wakes the broker threads is in flight; see ``FetchWakeUp``.
  let isWakingFetchThreads = Atomic(false)

  /// An event of the consumer.
  enum Event {
    /// The group assigns or revokes partitions, and waits for ``ConsumerHandle/apply(_:)``.
    case rebalance(Rebalances.Change)
    /// A commit has ended. The number is 0 for an automatic commit.
    case committed(number: Int, RDKafkaError?)
    /// An event of the client as a whole.
    case notice(ClientNotice)
  }

  /// Joins the group and subscribes to the topics. Does not block.
  func subscribe(to topics: [String]) throws(RDKafkaError) {
    if Workarounds.destroyingJoiningMemberAborts { handle.mustLeak.store(true, ordering: .releasing) }
    let list = try PartitionList(topics: topics)
    let status = unsafe rd_kafka_subscribe(handle.pointer, list.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "subscribe") }
  }

  /// Takes the next event without waiting.
  /// Call it until nil: a queue wakes the thread only when it ceases to be empty.
  func nextEvent() -> Event? {
    while true {
      guard let event = unsafe rd_kafka_queue_poll(events.pointer, 0) ?? rd_kafka_queue_poll(closing.pointer, 0) else {
        return nil
      }
      defer { unsafe rd_kafka_event_destroy(event) }
      if let event = unsafe read(event) { return event }
    }
  }

  private func read(_ event: OpaquePointer) -> Event? {
    switch unsafe rd_kafka_event_type(event) {
    case RD_KAFKA_EVENT_REBALANCE:
      guard let list = unsafe PartitionList(copying: rd_kafka_event_topic_partition_list(event)) else { return nil }
      let isAssignment = unsafe rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS
      if isAssignment { handle.mustLeak.store(false, ordering: .releasing) }
      return .rebalance(
        Rebalances.Change(
          kind: isAssignment ? .assign : hasLostAssignment ? .lose : .revoke, partitions: list.partitions))
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
      let response = unsafe rd_kafka_event_error(event)
      let number = Int(bitPattern: unsafe rd_kafka_event_opaque(event))
      var error = response == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : RDKafkaError(response: response, context: "commit")
      if error == nil, let list = unsafe PartitionList(copying: rd_kafka_event_topic_partition_list(event)) {
        error = list.firstError
      }
      // An automatic commit without offsets.
      if response == RD_KAFKA_RESP_ERR__NO_OFFSET { error = nil }
      return .committed(number: number, error)
    case RD_KAFKA_EVENT_STATS:
      unsafe handle.report(statistics: event)
      return nil
    default:
      return unsafe ClientNotice(event: event, handle: handle).map { .notice($0) }
    }
  }

  /// Performs a rebalance. Assigned partitions must have been passed to `redirect` or `queue(of:)`.
  func apply(_ change: Rebalances.Change) throws(RDKafkaError) {
    let list = try PartitionList(change.partitions)
    switch change.kind {
    case .assign:
      if let error = unsafe rd_kafka_incremental_assign(handle.pointer, list.pointer) {
        throw unsafe RDKafkaError(consuming: error, context: "assign")
      }
    case .revoke, .lose:
      if let error = unsafe rd_kafka_incremental_unassign(handle.pointer, list.pointer) {
        throw unsafe RDKafkaError(consuming: error, context: "unassign")
      }
    }
  }

  /// Redirects the partition's records to their queue.
  /// Must precede the assignment. librdkafka keeps the redirection until the handle is destroyed.
  func redirect(_ partition: TopicPartition) {
    guard let queue = unsafe rd_kafka_queue_get_partition(handle.pointer, partition.topic, partition.partition) else {
      return
    }
    unsafe rd_kafka_queue_forward(
      queue, pausableTopics.contains(partition.topic) ? pausableRecords.pointer : records.pointer)
    unsafe rd_kafka_queue_destroy(queue)
  }

  /// The queue of the partition alone, not redirected any more. Must precede the assignment.
  func queue(of partition: TopicPartition) throws(RDKafkaError) -> Queue {
    try Queue.partition(partition, of: handle, wakeUp: wakeUp)
  }

  /// Stores offsets for the next automatic commit.
  ///
  /// - Throws: `notAssigned`, naming a partition that is not assigned; the others are stored.
  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    let list = try PartitionList(offsets)
    let status = unsafe rd_kafka_offsets_store(handle.pointer, list.pointer)
    if var error = list.firstError {
      if error.code == .unknownTopic { error.code = .notAssigned }
      throw error
    }
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "store") }
  }

  /// Starts a commit of the stored offsets. Its end is an event with the number 0.
  func commitStored() {
    // The status is ignored: having no offsets is not an error, and other errors arrive with the event.
    _ = unsafe rd_kafka_commit(handle.pointer, nil, 1)
  }

  /// Starts a commit. Its end is an event with `number`, which must not be 0.
  func commit(_ offsets: [PartitionOffset], number: Int) throws(RDKafkaError) {
    let list = try PartitionList(offsets)
    let status = unsafe rd_kafka_commit_queue(
      handle.pointer, list.pointer, events.pointer, nil, UnsafeMutableRawPointer(bitPattern: number))
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "commit") }
  }

  /// Whether the group has removed the member, so that its partitions may have other owners.
  var hasLostAssignment: Bool { unsafe rd_kafka_assignment_lost(handle.pointer) != 0 }

  /// Begins to leave the group. A last rebalance revokes all partitions. Does not block.
  func beginLeaving() throws(RDKafkaError) {
    if let error = unsafe rd_kafka_consumer_close_queue(handle.pointer, closing.pointer) {
      throw unsafe RDKafkaError(consuming: error, context: "close")
    }
  }

  /// Whether the member has left the group.
  var hasLeft: Bool { unsafe rd_kafka_consumer_closed(handle.pointer) != 0 }
}

/// A handle that reads partitions from given offsets without joining a group or committing.
final class LogHandle: Sendable {
  let handle: Handle
  /// Wakes the thread that waits for records.
  let wakeUp: WakeUp
  /// The records of all partitions.
  let records: Queue

  /// Creates a handle and begins to read in the background.
  init(properties: PropertySet, from starts: [PartitionOffset]) throws(RDKafkaError) {
    handle = try Handle(kind: .consumer, properties: properties, events: 0, logsToQueue: false)
    wakeUp = try WakeUp()
    records = try Queue.make(on: handle, wakeUp: wakeUp)
    for start in starts {
      guard
        let queue = unsafe rd_kafka_queue_get_partition(
          handle.pointer, start.partition.topic, start.partition.partition)
      else { continue }
      unsafe rd_kafka_queue_forward(queue, records.pointer)
      unsafe rd_kafka_queue_destroy(queue)
    }
    let list = try PartitionList(starts)
    let status = unsafe rd_kafka_assign(handle.pointer, list.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "assign") }
  }

  /// Stops fetching the partitions.
  func stop(_ partitions: [TopicPartition]) throws(RDKafkaError) {
    let list = try PartitionList(partitions)
    let status = unsafe rd_kafka_pause_partitions(handle.pointer, list.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "pause") }
  }
}
