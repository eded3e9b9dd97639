import RDKafka

/// The batches that are being written, in the order in which they came: what is settled of them is settled in that
/// order.
struct WritesUnderWay {
  /// Up to where everything has been written, as far as that is still to be noted.
  var reached: [TopicPartition: Int64] = [:]
  private var writes: [(number: Int, batch: LedgerBatch, duplicates: Int??)] = []
  private var last = 0

  /// How many there are.
  var count: Int { writes.count }

  /// One begins. Returns its number.
  mutating func begin(_ batch: LedgerBatch) -> Int {
    last += 1
    writes.append((last, batch, nil))
    return last
  }

  /// One has ended, with so many records that did not count, or nil where it could not be written.
  mutating func end(_ number: Int, duplicates: Int?) {
    guard let index = writes.firstIndex(where: { $0.number == number }) else { return }
    writes[index].duplicates = .some(duplicates)
  }

  /// Removes the first one if it has ended.
  mutating func takeFirst() -> (batch: LedgerBatch, duplicates: Int?)? {
    guard let first = writes.first, let duplicates = first.duplicates else { return nil }
    writes.removeFirst()
    if duplicates != nil { reached.merge(first.batch.positions) { $1 } }
    return (first.batch, duplicates)
  }
}
