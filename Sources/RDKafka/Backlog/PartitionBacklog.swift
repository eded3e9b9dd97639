/// What is known about one partition: how much of it a group has still to read, in records and, as well as can be, in
/// bytes.
///
/// Kafka tells offsets, not sizes. What this process has produced is counted exactly; what others have produced is
/// taken to be as large as the average of that.
struct PartitionBacklog {
  /// How much had been produced here when the partition had come to `offset`.
  private struct Mark {
    var offset: Int64
    var records: Int
    var bytes: Int
  }

  /// Beyond this, marks are thinned out: an estimate gets coarser, never too small.
  private static let markLimit = 512

  /// The group's next record.
  private(set) var next: Int64 = 0
  /// The partition's end.
  private(set) var end: Int64 = 0
  /// Produced here, ever.
  private(set) var ownRecords = 0
  /// Their bytes.
  private(set) var ownBytes = 0
  /// The first is the latest at or before `next`.
  private var marks = [Mark(offset: 0, records: 0, bytes: 0)]

  /// A record of this process is in the partition.
  mutating func produced(offset: Int64, bytes: Int) {
    end = max(end, offset + 1)
    ownRecords += 1
    ownBytes += bytes
  }

  /// The cluster was asked. `before` is what had been produced here before it was asked, so that all of it lies before
  /// `end`.
  mutating func observed(next: Int64, end: Int64, before: (records: Int, bytes: Int)) {
    if let last = marks.last, end > last.offset {
      marks.append(Mark(offset: end, records: before.records, bytes: before.bytes))
    }
    self.next = max(self.next, next)
    self.end = max(self.end, end)
    while marks.count > 1, marks[1].offset <= self.next { marks.removeFirst() }
    if marks.count > Self.markLimit {
      marks = marks.enumerated().filter { $0.offset == 0 || $0.offset % 2 == 1 }.map(\.element)
    }
  }

  /// Records not yet read.
  var records: Int {
    max(0, Int(clamping: end - next))
  }

  /// Bytes not yet read, estimated.
  func bytes(averageBytes: Int) -> Int {
    let own = ownRecords - marks[0].records
    let ownBytes = ownBytes - marks[0].bytes
    guard own <= records else {
      // The mark is older than `next`: some of what it counts has been read.
      return Int(Double(ownBytes) * Double(records) / Double(own))
    }
    return ownBytes + (records - own) * averageBytes
  }
}
