/// When processes could not do their work, so that others may repeat it.
struct Troubles {
  /// The longest time from the end of a send to the commit that covers it, in microseconds.
  static let commitPatience: World.Time = .seconds(3)
  /// How long a process goes on that does not know yet that others have taken over: a heartbeat and its answer.
  private static let notice: World.Time = .seconds(4)

  /// When a process died, froze, was cut off or gave partitions away, and until when its commits may have failed.
  private var spans: [String: [ClosedRange<World.Time>]] = [:]
  /// When each process was told to end.
  private var ends: [String: World.Time] = [:]
  /// Until when any process was in trouble last.
  private(set) var last: World.Time = -1

  /// A process is in trouble for a while: others may repeat what it did shortly before, and since.
  mutating func begin(_ process: String, at now: World.Time, for time: World.Time) {
    last = max(last, now + time + Self.notice)
    spans[process, default: []].append(now...now + time + Self.notice)
  }

  /// A process is told to end.
  mutating func end(_ process: String, at now: World.Time) { ends[process] = ends[process] ?? now }

  /// Whether the process is in trouble at that moment.
  func hold(_ process: String, at moment: World.Time) -> Bool {
    spans[process]?.contains { $0.contains(moment) } == true
  }

  /// Whether the process is in trouble between two moments, or before a commit would follow.
  func hold(_ process: String, between start: World.Time, and end: World.Time) -> Bool {
    spans[process]?.contains { $0.overlaps(start...end + Self.commitPatience) } == true
  }

  /// Whether the process was in trouble at that moment or later.
  func hold(_ process: String, after moment: World.Time) -> Bool {
    spans[process]?.contains { $0.upperBound >= moment } == true
  }

  /// Whether the process was told to end by that moment.
  func hasEnded(_ process: String, by moment: World.Time) -> Bool { ends[process].map { $0 <= moment } == true }
}
