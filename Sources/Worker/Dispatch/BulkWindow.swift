/// How many pushes of broadcasts one sender may have, so that single sends need not stand in line behind them.
///
/// What is handed to a sender passes through queues that no push can leave out: an event loop's, a socket's, the service's own. Where the machine is what
/// limits the rate, more in flight makes nothing faster, only these queues longer. So while single sends come, the window follows the time in which
/// pushes are answered, as TCP Vegas does: it shrinks while that is longer than with few in flight, and grows while it is not. How short it is
/// with few is tried now and then, as BBR does. A service that is far away takes longer than any queue here; to it the window is
/// as wide as it can be. A pure value; times are uptimes in milliseconds.
struct BulkWindow: Sendable {
  /// For how long after a single push others are expected, and how long a shortest time is good for.
  static let memory: Int64 = 10_000
  /// How long the shortest time is tried at most: where that many pushes are not answered sooner, it would cost too much.
  static let trial: Int64 = 100
  /// A service that takes so long with few pushes in flight is far away.
  static let farAway: Int64 = 20
  /// How much longer than the shortest time answers may take.
  static let slack: Int64 = 1

  /// The most that may be in flight.
  let most: Int
  /// However long answers take, and while the shortest time is tried.
  let least: Int
  private var size: Int
  /// When the last single push was handed over; nil: never.
  private var singleAt: Int64?
  /// The shortest time of an answer; nil: it is being tried.
  private var shortest: Int64?
  /// Since when it is known, or tried.
  private var since: Int64 = 0
  /// The push whose answer is timed.
  private var timed: (ticket: Ticket, submittedAt: Int64)?

  /// `most`: at least 1.
  init(most: Int) {
    self.most = most
    least = max(1, most / 8)
    size = most
  }

  /// How many may be in flight.
  func limit(at uptime: Int64) -> Int {
    guard isNeeded(at: uptime) else { return most }
    guard let shortest else { return uptime - since < Self.trial ? least : most }
    return shortest < Self.farAway ? size : most
  }

  /// A push was handed over; with it, `inFlight` of broadcasts have no answer.
  mutating func submitted(_ ticket: Ticket, inFlight: Int, at uptime: Int64) {
    guard ticket.isBulk else {
      if !isNeeded(at: uptime) { tryShortest(at: uptime) }
      singleAt = uptime
      return
    }
    guard isNeeded(at: uptime) else { return }
    if uptime - since >= Self.memory { tryShortest(at: uptime) }
    if timed == nil, shortest != nil || inFlight <= least { timed = (ticket, uptime) }
  }

  /// A push was answered. `isMostlyBulk`: whether most of what has no answer is of broadcasts; otherwise the line is not their making.
  mutating func answered(_ ticket: Ticket, isMostlyBulk: Bool, at uptime: Int64) {
    guard let timed, timed.ticket == ticket else { return }
    self.timed = nil
    let time = uptime - timed.submittedAt
    guard let known = shortest else { return (shortest, since) = (time, uptime) }
    shortest = min(known, time)
    let step = max(1, size / 8)
    size = time > known + Self.slack && isMostlyBulk ? max(least, size - step) : min(most, size + step)
  }

  private mutating func tryShortest(at uptime: Int64) { (shortest, since, timed) = (nil, uptime, nil) }

  private func isNeeded(at uptime: Int64) -> Bool { singleAt.map { uptime - $0 < Self.memory } ?? false }
}
