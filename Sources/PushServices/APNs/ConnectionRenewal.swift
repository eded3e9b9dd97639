import FanfareCore

/// When answers are a reason for new connections. Many pushes of one connection say the same, and rapid reconnecting
/// counts as an attack with Apple, so connections are renewed once for all of them, and not again at once.
struct ConnectionRenewal: Sendable {
  /// The least time between two renewals.
  static let minimumInterval: Duration = .seconds(30)

  /// Counts the renewals; a push carries the number that it was submitted under.
  private(set) var epoch = 0
  private var renewedAt: UnixTime?

  /// Whether connections are to be renewed because of an answer to a push of that epoch.
  mutating func isDue(epoch: Int, now: UnixTime) -> Bool {
    guard epoch == self.epoch else { return false }
    if let renewedAt, now >= renewedAt, now - renewedAt < Self.minimumInterval { return false }
    renewed(now: now)
    return true
  }

  /// Connections are renewed for a reason of our own.
  mutating func renewed(now: UnixTime) {
    epoch += 1
    renewedAt = now
  }
}
