import Synchronization

/// A queue of records with the credit against which it is read. Belongs to the consumer's thread alone.
final class RecordQueue {
  let reader: RecordReader
  let credit: Credit
  private var fetchWakeUp: FetchWakeUp?

  /// `fetchWakeUp`: nil for a queue that never fills up.
  init(reader: RecordReader, credit: Credit, fetchWakeUp: FetchWakeUp?) {
    self.reader = reader
    self.credit = credit
    self.fetchWakeUp = fetchWakeUp
  }

  /// Takes the available records up to the credit, and says whether to wake librdkafka's threads; see `FetchWakeUp`.
  /// Returns nil without credit.
  func take() -> (taken: RecordReader.Taken, wakesFetchThreads: Bool)? {
    let room = credit.available()
    guard room > 0 else { return nil }
    let taken = reader.take(limit: room)
    guard taken.count > 0 else { return (taken, false) }
    credit.spend(taken.count)
    let isDue = fetchWakeUp?.isDue(taken: taken.count, bytes: taken.bytes, left: reader.queue.count, at: .now)
    return (taken, isDue ?? false)
  }
}

/// The credits of assigned partitions, where each has its own. Granted from any thread.
final class PartitionCredits: Sendable {
  private let credits = Mutex<[TopicPartition: Credit]>([:])

  subscript(partition: TopicPartition) -> Credit? {
    get { credits.withLock { $0[partition] } }
    set { credits.withLock { $0[partition] = newValue } }
  }
}
