import FanfareCore

/// How far a segment of a broadcast is: its pages are gone through one after another.
struct SegmentWalk: Sendable {
  /// How many pages are in hand at a time, and how many of all segments together end at a time without being pushed: a
  /// record of a few hundred bytes may stand for millions.
  static let mostPages = 1000

  /// What goes on with it.
  enum Phase: Sendable {
    /// It is being asked which of its next pages were finished before.
    case asking
    /// The next page may be opened.
    case ready
    /// A page of it is open.
    case busy
    /// The pages in hand end without being pushed.
    case ending
  }

  let broadcast: BroadcastID
  /// How many pages the whole broadcast has.
  let pages: Int
  /// Which of them are the segment's and have not been taken in hand yet.
  var ahead: Range<Int>
  var phase = Phase.asking
  /// Those in hand that are neither finished nor open; the next one is the last.
  var rest: [Int] = []
}
