package import FanfareCore

/// A worker's share of a broadcast: the segments that it holds.
package struct BroadcastShare: Hashable, Sendable {
  package let broadcast: BroadcastID
  package private(set) var segments = 0
  /// The pages of these segments that are not begun.
  package private(set) var pagesAhead = 0

  init(of broadcast: BroadcastID) { self.broadcast = broadcast }

  mutating func add(_ walk: SegmentWalk) {
    segments += 1
    pagesAhead += walk.pagesAhead
  }
}
