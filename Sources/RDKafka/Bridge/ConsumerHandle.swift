import CRDKafka
import Synchronization

/// A handle for consuming in a group.
///
/// Records do not arrive on the consumer's queue: each assigned partition's queue is redirected to ``records`` or
/// ``pausableRecords``. So rebalances and errors can be served at all times, while records are only taken when the
/// application has room for them. (Pausing partitions would throw away what was fetched, and may lose records before
/// 2.1.)
final class ConsumerHandle: Sendable {
  /// The handle itself.
  let handle: Handle
  /// Wakes the consumer's thread when there is something on a queue, or when the application wants something.
  let wakeUp: WakeUp
  /// Where the records of assigned partitions wait, but for those of topics that can be held back.
  let records: Queue
  /// Where those wait.
  let pausableRecords: Queue
  private let pausableTopics: Set<String>
  private let events: Queue
  private let closing: Queue

  /// Makes a handle; contacts no broker yet.
  init(properties: PropertySet, pausableTopics: Set<String>) throws(RDKafkaError) {
    let events = RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG
    handle = try Handle(kind: .consumer, properties: properties, events: events)
    wakeUp = try WakeUp()
    self.events = try Queue.consumer(of: handle, wakeUp: wakeUp)
    records = try Queue.make(on: handle, wakeUp: wakeUp)
    pausableRecords = try Queue.make(on: handle, wakeUp: wakeUp)
    self.pausableTopics = pausableTopics
    closing = try Queue.make(on: handle, wakeUp: wakeUp)
  }

  /// Whether a request that shall wake them is under way.
  let isReminding = Atomic(false)
  /// Whether librdkafka's threads sleep for up to a second when the prefetch is full: `fetch.queue.backoff.ms` came
  /// with 2.2.
  var sleepsWhenFull: Bool { rd_kafka_version() < 0x0202_00ff }

  /// An event of the consumer.
  enum Event {
    /// The group gives or takes partitions, and waits.
    case rebalance(Change)
    /// A commit has ended; the ticket is 0 for an automatic one.
    case committed(ticket: Int, RDKafkaError?)
    /// Something about the client as a whole.
    case notice(ClientNotice)
  }

  /// A rebalance that librdkafka waits to be answered.
  struct Change {
    /// What kind of change.
    var kind: Kind
    /// The partitions concerned, as librdkafka wants them back.
    var list: PartitionList

    /// Given, taken back in order, or taken away already.
    enum Kind {
      case assign, revoke, lose
    }
  }

  /// Joins the group and asks for the topics. Does not block.
  func subscribe(to topics: [String]) throws(RDKafkaError) {
    // Until 2.3 librdkafka aborts the process when it destroys a member of a cooperative-sticky group that has joined
    // and not had its first assignment (librdkafka#4312): a worker stopped while its group forms.
    if rd_kafka_version() < 0x0203_00ff { handle.isPerilous.store(true, ordering: .releasing) }
    let list = try PartitionList(topics: topics)
    let status = unsafe rd_kafka_subscribe(handle.pointer, list.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "subscribe") }
  }

  /// Takes the next event that is there, without waiting. Must be called until nil, as a wake-up is only given when a
  /// queue ceases to be empty.
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
      if isAssignment { handle.isPerilous.store(false, ordering: .releasing) }
      let isLost = unsafe rd_kafka_assignment_lost(handle.pointer) != 0
      return .rebalance(Change(kind: isAssignment ? .assign : isLost ? .lose : .revoke, list: list))
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
      let response = unsafe rd_kafka_event_error(event)
      let ticket = Int(bitPattern: unsafe rd_kafka_event_opaque(event))
      var error = response == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : RDKafkaError(response: response, context: "commit")
      if error == nil, let list = unsafe PartitionList(copying: rd_kafka_event_topic_partition_list(event)) {
        error = list.firstError
      }
      // An automatic commit with nothing to commit.
      if response == RD_KAFKA_RESP_ERR__NO_OFFSET { error = nil }
      return .committed(ticket: ticket, error)
    default:
      return unsafe ClientNotice(event: event, handle: handle).map { .notice($0) }
    }
  }

  /// Lets a rebalance take effect.
  func apply(_ change: Change) throws(RDKafkaError) {
    switch change.kind {
    case .assign:
      for partition in change.list.partitions { redirect(partition) }
      if let error = unsafe rd_kafka_incremental_assign(handle.pointer, change.list.pointer) {
        throw unsafe RDKafkaError(consuming: error, context: "assign")
      }
    case .revoke, .lose:
      if let error = unsafe rd_kafka_incremental_unassign(handle.pointer, change.list.pointer) {
        throw unsafe RDKafkaError(consuming: error, context: "unassign")
      }
    }
  }

  /// Has the partition's records delivered to its queue; must happen before the assignment. librdkafka keeps the
  /// partition and the redirection until the handle is destroyed.
  private func redirect(_ partition: TopicPartition) {
    guard let queue = unsafe rd_kafka_queue_get_partition(handle.pointer, partition.topic, partition.partition) else {
      return
    }
    unsafe rd_kafka_queue_forward(
      queue, pausableTopics.contains(partition.topic) ? pausableRecords.pointer : records.pointer)
    unsafe rd_kafka_queue_destroy(queue)
  }

  /// Stores offsets for the next automatic commit.
  ///
  /// - Throws: `notAssigned`, naming a partition, if one is not assigned; the others are stored.
  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    let list = try PartitionList(offsets)
    let status = unsafe rd_kafka_offsets_store(handle.pointer, list.pointer)
    if var error = list.firstError {
      if error.code == .unknownTopic { error.code = .notAssigned }
      throw error
    }
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "store") }
  }

  /// Starts a commit of what is stored; its end arrives as an event with the ticket 0.
  func commitStored() {
    // That there is nothing to commit is no error here, and any other arrives as the event.
    _ = unsafe rd_kafka_commit(handle.pointer, nil, 1)
  }

  /// Starts a commit; its end arrives as an event with `ticket`, which must not be 0.
  func commit(_ offsets: [PartitionOffset], ticket: Int) throws(RDKafkaError) {
    let list = try PartitionList(offsets)
    let status = unsafe rd_kafka_commit_queue(
      handle.pointer, list.pointer, events.pointer, nil, UnsafeMutableRawPointer(bitPattern: ticket))
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "commit") }
  }

  /// Begins to leave the group; a last rebalance takes the partitions away. Does not block.
  func beginLeaving() throws(RDKafkaError) {
    if let error = unsafe rd_kafka_consumer_close_queue(handle.pointer, closing.pointer) {
      throw unsafe RDKafkaError(consuming: error, context: "close")
    }
  }

  /// Whether the group has been left.
  var hasLeft: Bool {
    unsafe rd_kafka_consumer_closed(handle.pointer) != 0
  }
}
