/// How far a broadcast is.
package struct BroadcastProgress: Hashable, Sendable {
  package let control: BroadcastControl
  /// How many pages it has; 0 before it is planned.
  package let pages: Int
  /// How many of them are finished.
  package let finishedPages: Int
  /// How many of those were finished within `window`: what the time that is left is judged by.
  package let recentPages: Int
  /// When it was planned; nil before.
  package let plannedAt: UnixTime?

  /// How far back pages count as recent.
  package static let window = Duration.seconds(30)

  package init(control: BroadcastControl, pages: Int, finishedPages: Int, recentPages: Int, plannedAt: UnixTime?) {
    self.control = control
    self.pages = pages
    self.finishedPages = finishedPages
    self.recentPages = recentPages
    self.plannedAt = plannedAt
  }

  /// Whether every page is finished.
  package var isFinished: Bool { pages > 0 && finishedPages >= pages }

  /// How long it will take at the pace of the last moments; nil while nothing can be said: not planned, not running, or
  /// no page finished lately.
  package func remaining(at now: UnixTime) -> Duration? {
    guard pages > 0, !isFinished, control.state == .running, recentPages > 0, let plannedAt else { return nil }
    let span = min(max(now - plannedAt, .milliseconds(1)), Self.window)
    return span * Double(pages - finishedPages) / Double(recentPages)
  }
}
