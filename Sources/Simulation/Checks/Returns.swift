import FanfareCore

/// How often each deferred part of a send was written to a retry topic, and copied back.
///
/// It may come back once for each time that it was written, and again for each copy that Kafka has not acknowledged.
struct Returns {
  /// A copy: which process made it, and when.
  struct Copy {
    let process: String
    let time: World.Time
  }

  private struct Part {
    /// How often it may come back.
    var expected = 0
    var copies: [Copy] = []
  }

  /// By `RetryRecord.identity`.
  private var parts: [SendID: Part] = [:]

  /// The part was deferred, possibly again by a worker that repeats another's work, or a copy of it is in doubt.
  mutating func expect(_ part: SendID) { parts[part, default: Part()].expected += 1 }

  /// The part was copied back. Returns the copies before it, if there are more than expected.
  mutating func returned(_ part: SendID, by copy: Copy) -> [Copy]? {
    let former = parts[part, default: Part()].copies
    parts[part]?.copies.append(copy)
    return former.isEmpty || former.count < parts[part]?.expected ?? 0 ? nil : former
  }
}
