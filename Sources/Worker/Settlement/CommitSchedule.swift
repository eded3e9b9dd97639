import RDKafka

/// When positions are committed: one commit at a time, not too often, and not while the group would refuse it. A pure
/// value.
struct CommitSchedule: Sendable {
  private let interval: Int64
  private var due = Int64.min
  private var isHurried = false
  /// Whether the group is between two assignments and refuses positions until it has been heard of again. Trying
  /// meanwhile would do harm: librdkafka before 2.10 takes a refused generation for the loss of all partitions.
  private(set) var isRefused = false
  /// Whether the group has been heard of since the last commit began.
  private var hasHeard = false
  /// Whether a commit is on its way.
  private(set) var isCommitting = false
  /// The partitions concerned by the commit on its way; empty when there is none.
  private(set) var open: Set<TopicPartition> = []
  /// The number of the commit that begins next.
  private(set) var next = 1
  /// How the last commit failed; nil when it did not.
  private(set) var failure: RDKafkaError?
  /// The most bytes of metadata the broker is believed to take.
  private(set) var metadataBytes: Int

  /// Commits at most every `interval` milliseconds, with at most so many bytes of metadata.
  init(interval: Int64, metadataBytes: Int) {
    self.interval = interval
    self.metadataBytes = metadataBytes
  }

  /// Whether a commit may begin. The last one of partitions that are given back (`isLast`) may even where the group has
  /// refused: there is no later.
  func isDue(at uptime: Int64, isLast: Bool) -> Bool {
    !isCommitting && (isLast || (!isRefused && (isHurried || uptime >= due)))
  }

  /// Whether the commit with that number has ended.
  func isOver(_ number: Int) -> Bool {
    (isCommitting ? next - 1 : next) > number
  }

  /// Does not let the next commit wait for its time.
  mutating func hurry() {
    isHurried = true
  }

  /// A commit of positions in these partitions begins.
  mutating func begin(_ partitions: [TopicPartition], at uptime: Int64) {
    open = Set(partitions)
    isCommitting = true
    isHurried = false
    hasHeard = false
    next += 1
    due = uptime + interval
  }

  /// The commit has ended, well or with an error.
  mutating func end(_ error: RDKafkaError?, at uptime: Int64) {
    isCommitting = false
    open = []
    failure = error
    guard let error else { return }
    // Even where commits follow at once on one another, a broker that cannot be reached is not asked without rest.
    due = max(due, uptime + 50)
    // Refused by a group that has been heard of since, it may be taken now; waiting for the next word might take
    // forever.
    if error.code == .rebalancing, !hasHeard { isRefused = true }
    // A broker may be set to take less than most do.
    if error.code == .messageTooLarge { metadataBytes = metadataBytes > 64 ? metadataBytes / 2 : 0 }
  }

  /// Whether a commit that failed so can succeed later: also where it had too much metadata, as the next has less.
  func isWorthRepeating(after error: RDKafkaError) -> Bool {
    error.isRetriable || error.code == .messageTooLarge
  }

  /// The group has come to a new assignment, and takes positions again.
  mutating func groupHasSettled() {
    isRefused = false
    hasHeard = true
  }
}
