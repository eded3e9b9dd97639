import FanfareCore

/// The progress of a segment of a broadcast, whose pages are pushed one after another.
///
/// *Asking* (which of its next pages are already finished?) → *ready* → *busy* (a page is open) → *ready* → … →
/// *asking* for the next ones. *Ready* → *ending*: its pages in hand end without being pushed → *asking*.
struct SegmentWalk: Sendable {
  /// The most pages in hand at a time, and the most of all segments that may be ending without
  /// being pushed. A record of a few hundred bytes may stand for millions of pages.
  static let mostPages = 1000

  enum Phase: Sendable {
    case asking
    case ready
    case busy
    case ending
  }

  let broadcast: BroadcastID
  /// How many pages the whole broadcast has.
  let pages: Int
  /// The segment's pages that are not in hand yet.
  private var ahead: Range<Int>
  private(set) var phase = Phase.asking
  /// The pages in hand that are neither finished nor open; the last element is next.
  private(set) var rest: [Int] = []

  init(broadcast: BroadcastID, pages: Int, ahead: Range<Int>) {
    self.broadcast = broadcast
    self.pages = pages
    self.ahead = ahead
  }

  /// The pages that are neither finished nor open, as far as is known.
  var pagesAhead: Int { ahead.count + rest.count }

  /// The runs of consecutive pages in hand, in ascending order.
  var runs: [Range<Int>] {
    var runs: [Range<Int>] = []
    for page in rest.reversed() {
      if let last = runs.last, last.upperBound == page {
        runs[runs.count - 1] = last.lowerBound..<page + 1
      } else {
        runs.append(page..<page + 1)
      }
    }
    return runs
  }

  /// Takes the next pages in hand; nil if none are left.
  mutating func takePages() -> Range<Int>? {
    guard !ahead.isEmpty else { return nil }
    let next = ahead.prefix(Self.mostPages)
    ahead = ahead.dropFirst(next.count)
    phase = .asking
    return next
  }

  /// Handles the answer: `finished` are the finished pages among those taken.
  mutating func resume(_ range: Range<Int>, finished: Set<Int>) {
    rest = range.reversed().filter { !finished.contains($0) }
    phase = .ready
  }

  /// Opens the next page; nil if there is none.
  mutating func openPage() -> Int? {
    guard let number = rest.popLast() else { return nil }
    phase = .busy
    return number
  }

  /// Puts back an open page that was given up, so that it will be opened again.
  mutating func reopen(_ page: Int) {
    guard phase == .busy else { return }
    rest.append(page)
    phase = .ready
  }

  mutating func finishPage() { phase = .ready }
  mutating func end() { phase = .ending }
}
