import FanfareCore

/// How far a segment of a broadcast is: its pages are pushed one after another.
///
/// *Asking* which of its next pages were finished before → *ready* → *busy* (a page is open) → *ready* → … → *asking*
/// for the next ones. *Ready* → *ending*: its pages in hand end without being pushed → *asking*.
struct SegmentWalk: Sendable {
  /// How many pages are in hand at a time, and how many of all segments together end at a time without being pushed: a
  /// record of a few hundred bytes may stand for millions.
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
  /// The pages in hand that are neither finished nor open; the last one is next.
  private(set) var rest: [Int] = []

  init(broadcast: BroadcastID, pages: Int, ahead: Range<Int>) {
    self.broadcast = broadcast
    self.pages = pages
    self.ahead = ahead
  }

  /// Takes the next pages in hand; nil: there are none left.
  mutating func takePages() -> Range<Int>? {
    guard !ahead.isEmpty else { return nil }
    let next = ahead.prefix(Self.mostPages)
    ahead = ahead.dropFirst(next.count)
    phase = .asking
    return next
  }

  /// It is known which of the pages taken are finished.
  mutating func resume(_ range: Range<Int>, finished: Set<Int>) {
    rest = range.reversed().filter { !finished.contains($0) }
    phase = .ready
  }

  /// Opens the next page; nil: there is none.
  mutating func openPage() -> Int? {
    guard let number = rest.popLast() else { return nil }
    phase = .busy
    return number
  }

  /// The open page was given up: it will be opened again.
  mutating func reopen(_ page: Int) {
    guard phase == .busy else { return }
    rest.append(page)
    phase = .ready
  }

  mutating func finishPage() { phase = .ready }
  mutating func end() { phase = .ending }
}
