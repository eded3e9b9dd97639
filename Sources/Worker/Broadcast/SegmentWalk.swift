import FanfareCore

/// How far a segment of a broadcast is: its pages are gone through one after another.
struct SegmentWalk: Sendable {
  /// What goes on with it.
  enum Phase: Sendable {
    /// It is being asked which of its pages were finished before.
    case asking
    /// The next page may be opened.
    case ready
    /// A page of it is open.
    case busy
    /// What is left of it ends without being pushed.
    case ending
  }

  let broadcast: BroadcastID
  /// How many pages the whole broadcast has.
  let pages: Int
  /// Which of them are the segment's.
  let range: Range<Int>
  var phase = Phase.asking
  /// Those that are neither finished nor open; the next one is the last.
  var rest: [Int] = []
}
