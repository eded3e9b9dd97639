import RDKafka

/// When positions are committed: one commit at a time, at the interval or after a number of records, whichever comes
/// first.
///
/// While the group takes no commits, they go on at the interval: the source keeps them for the partitions' next owners,
/// who would otherwise repeat all records of that time.
struct CommitSchedule: Sendable {
  private let interval: Int64
  private let records: Int
  private var due = Int64.min
  private var isHurried = false
  /// Records settled since the last commit began.
  private var settled = 0
  /// Whether a commit is under way.
  private(set) var isCommitting = false
  /// The partitions of the commit under way; empty when there is none.
  private(set) var open: Set<TopicPartition> = []
  /// The number of the commit that begins next.
  private(set) var next = 1
  /// The error of the last commit; nil when it succeeded.
  private(set) var failure: RDKafkaError?
  /// The assumed limit of the broker for metadata, in bytes.
  private(set) var metadataBytes: Int

  /// Commits every `interval` milliseconds, or as soon as `records` have settled, with at most `metadataBytes` bytes of
  /// metadata.
  init(interval: Int64, records: Int, metadataBytes: Int) {
    self.interval = interval
    self.records = records
    self.metadataBytes = metadataBytes
  }

  /// Whether the group is between two assignments and has refused the last commit.
  var isRefused: Bool { failure?.code == .rebalancing }

  /// Whether a commit may begin.
  /// The last one of partitions that are given back (`isLast`) may begin at any time: no later one follows.
  func isDue(at uptime: Int64, isLast: Bool) -> Bool {
    guard !isCommitting else { return false }
    // After a failure only the interval counts: the group would be asked in a loop.
    return isLast || isHurried || uptime >= due || (settled >= records && failure == nil)
  }

  /// Whether the commit with that number has ended. The one under way has the number `next - 1`.
  func isOver(_ number: Int) -> Bool {
    (isCommitting ? next - 1 : next) > number
  }

  /// Makes the next commit due at once.
  mutating func hurry() {
    isHurried = true
  }

  /// Counts a settled record.
  mutating func countSettled() {
    settled += 1
  }

  /// Begins a commit of positions in these partitions.
  mutating func begin(_ partitions: [TopicPartition], at uptime: Int64) {
    open = Set(partitions)
    isCommitting = true
    isHurried = false
    settled = 0
    next += 1
    due = uptime + interval
  }

  /// Ends the commit, with an error if it failed.
  mutating func end(_ error: RDKafkaError?, at uptime: Int64) {
    isCommitting = false
    open = []
    failure = error
    guard let error else { return }
    // Pauses between attempts, even with a commit interval of 0.
    due = max(due, uptime + 50)
    // The broker's offset.metadata.max.bytes may be lower than the default.
    if error.code == .messageTooLarge { metadataBytes = metadataBytes > 64 ? metadataBytes / 2 : 0 }
  }

  /// Whether a later commit can succeed after this error.
  /// After too much metadata it can: the next has less.
  func isWorthRepeating(after error: RDKafkaError) -> Bool {
    error.isRetriable || error.code == .messageTooLarge
  }
}
