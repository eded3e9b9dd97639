/// When to remind librdkafka that there is room again for records to fetch in advance.
///
/// Before 2.2 a broker's thread that has found its prefetch full sleeps for up to a second, whatever is taken out
/// meanwhile, unless something else is to be sent: a small prefetch then runs dry, and one that never does takes a
/// second's worth of memory. Any request wakes the thread.
struct FetchReminder {
  /// Often enough for any rate, and nothing beside the fetches themselves.
  private static let interval: Duration = .milliseconds(20)

  private let isNeeded: Bool
  private let records: Int
  private let bytes: Int
  private var mayHaveBeenFull = false
  private var notBefore: ContinuousClock.Instant?

  /// - Parameters:
  ///   - isNeeded: Whether this librdkafka sleeps so.
  ///   - records: Prefetching stops at this many.
  ///   - bytes: Or at this many.
  init(isNeeded: Bool, records: Int, bytes: Int) {
    self.isNeeded = isNeeded
    self.records = max(1, records)
    self.bytes = max(1, bytes)
  }

  /// So many records of so many bytes were taken; so many are left.
  ///
  /// - Returns: Whether to send a request now.
  mutating func isDue(taken: Int, bytes takenBytes: Int, left: Int, at now: ContinuousClock.Instant) -> Bool {
    guard isNeeded, taken > 0 else { return false }
    // librdkafka does not tell the bytes of what is left, so what was taken stands for it, and half of what is allowed
    // is taken for full.
    let leftBytes = left * (takenBytes / taken)
    if left + taken >= records / 2 || leftBytes + takenBytes >= bytes / 2 { mayHaveBeenFull = true }
    guard mayHaveBeenFull, left <= records / 4, leftBytes <= bytes / 4, notBefore.map({ now >= $0 }) ?? true else {
      return false
    }
    mayHaveBeenFull = false
    notBefore = now + Self.interval
    return true
  }
}
