import RDKafka

/// When positions are committed: one commit at a time, not too often, and not while the group would
/// refuse it.
struct CommitSchedule: Sendable {
  private let interval: Int64
  private var due = Int64.min
  private var isHurried = false
  /// Whether the group is between two assignments and refuses positions until the next one.
  /// Trying meanwhile does harm: librdkafka before 2.10 treats a refused generation as the loss of all partitions.
  private(set) var isRefused = false
  /// Whether the group has assigned or revoked partitions since the last commit began.
  private var hasHeard = false
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

  /// Commits at most every `interval` milliseconds, with at most `metadataBytes` bytes of metadata.
  init(interval: Int64, metadataBytes: Int) {
    self.interval = interval
    self.metadataBytes = metadataBytes
  }

  /// Whether a commit may begin.
  /// The last one of partitions that are given back (`isLast`) may begin even if the group has refused: no later one
  /// follows.
  func isDue(at uptime: Int64, isLast: Bool) -> Bool {
    !isCommitting && (isLast || (!isRefused && (isHurried || uptime >= due)))
  }

  /// Whether the commit with that number has ended.
  func isOver(_ number: Int) -> Bool {
    (isCommitting ? next - 1 : next) > number
  }

  /// Makes the next commit due at once.
  mutating func hurry() {
    isHurried = true
  }

  /// Begins a commit of positions in these partitions.
  mutating func begin(_ partitions: [TopicPartition], at uptime: Int64) {
    open = Set(partitions)
    isCommitting = true
    isHurried = false
    hasHeard = false
    next += 1
    due = uptime + interval
  }

  /// Ends the commit, with an error if it failed.
  mutating func end(_ error: RDKafkaError?, at uptime: Int64) {
    isCommitting = false
    open = []
    failure = error
    guard let error else { return }
    // Pauses between attempts at an unreachable broker, even with a commit interval of 0.
    due = max(due, uptime + 50)
    // If the group has come to a new assignment since, it may accept now; the next assignment might never come.
    if error.code == .rebalancing, !hasHeard { isRefused = true }
    // The broker's offset.metadata.max.bytes may be lower than the default.
    if error.code == .messageTooLarge { metadataBytes = metadataBytes > 64 ? metadataBytes / 2 : 0 }
  }

  /// Whether a later commit can succeed after this error.
  /// After too much metadata it can: the next has less.
  func isWorthRepeating(after error: RDKafkaError) -> Bool {
    error.isRetriable || error.code == .messageTooLarge
  }

  /// Notes that the group has come to a new assignment, and accepts positions again.
  mutating func groupHasSettled() {
    isRefused = false
    hasHeard = true
  }
}
