/// How many pushes of broadcasts one sender may have, so that single sends need not stand in line behind them.
///
/// What is handed to a sender passes through queues that no push can leave out: an event loop's, a socket's, the
/// service's own. Where the machine is what limits the rate, more in flight makes nothing faster, only these queues
/// longer. So while single sends come, the window follows the time in which pushes are answered, as TCP Vegas does: it
/// shrinks while even the quickest of some answers takes longer than with few in flight, and grows while it does not.
/// How long they take with few is tried now and then, as BBR does. A service that is far away takes longer than these
/// queues; to it the window is as wide as it can be. A pure value; times are uptimes in milliseconds.
struct BulkWindow: Sendable {
  /// For how long after a single push others are expected, and how long a shortest time is good for.
  static let memory: Int64 = 10_000
  /// How long it is tried at most how long answers take with few in flight: by then those before them are answered, or
  /// most of them never are.
  static let trial: Int64 = 1_000
  /// A service that takes so long with few in flight is far away.
  static let farAway: Int64 = 20
  /// So many answers in a row are judged by the quickest of them: a queue holds up all of them, and chance does not.
  static let round = 8

  private enum Shortest {
    /// There are no single sends.
    case unneeded
    /// It is being tried.
    case tried(since: Int64)
    case known(Int64, since: Int64)
  }

  /// The most that may be in flight.
  let most: Int
  private let least: Int
  private let few: Int
  private var size: Int
  /// The shortest time of an answer.
  private var shortest = Shortest.unneeded
  /// The push whose answer is timed.
  private var timed: (ticket: Ticket, submittedAt: Int64)?
  /// The quickest answer since the window changed last, and how many there were.
  private var quickest = (time: Int64.max, of: 0)

  /// `most`: at least 1.
  init(most: Int) {
    self.most = most
    least = max(1, most / 8)
    few = max(1, most / 64)
    size = most
  }

  /// How many may be in flight. Asked only while pushes of broadcasts wait: without them nothing can be tried, and its
  /// time would pass. `singleAt`: when the last push of a single send was handed over, to whichever sender: all of them
  /// share the machine.
  mutating func limit(singleAt: Int64, at uptime: Int64) -> Int {
    guard uptime - singleAt < Self.memory else {
      shortest = .unneeded
      return most
    }
    switch shortest {
    case .unneeded:
      size = least
      begin(at: uptime)
    case .tried(let since), .known(_, let since): if uptime - since >= Self.memory { begin(at: uptime) }
    }
    return switch shortest {
    case .unneeded: most
    case .tried(let since): uptime - since < Self.trial ? few : most
    case .known(let time, _): time < Self.farAway ? size : most
    }
  }

  /// A push was handed over; with it, `inFlight` of broadcasts have no answer.
  mutating func submitted(_ ticket: Ticket, inFlight: Int, at uptime: Int64) {
    // One that is long in coming says little, and is not waited for.
    if let timed, uptime - timed.submittedAt < Self.trial { return }
    switch shortest {
    case .unneeded: timed = nil
    case .tried: timed = inFlight <= few ? (ticket, uptime) : nil
    case .known: timed = (ticket, uptime)
    }
  }

  /// A push has its end. `isAnswer`: the service has done with it what was asked, and did not refuse it in passing.
  /// `isMostlyBulk`: whether most of what has no answer is of broadcasts; otherwise the queue is not their making.
  mutating func ended(_ ticket: Ticket, isAnswer: Bool, isMostlyBulk: Bool, at uptime: Int64) {
    guard let timed, timed.ticket == ticket else { return }
    self.timed = nil
    guard isAnswer else { return }
    let time = uptime - timed.submittedAt
    switch shortest {
    case .unneeded: break
    case .tried: shortest = .known(time, since: uptime)
    case .known(let known, let since):
      quickest = (min(quickest.time, time), quickest.of + 1)
      guard quickest.of == Self.round else { return }
      let allowed = max(1, known) + known / 4
      if quickest.time <= allowed || !isMostlyBulk {
        size = min(most, size + max(1, size / 4))
      } else {
        // What is answered in the time allowed, at the rate there is; but by chance all of a few may have been slow.
        size = max(least, size / 2, size * Int(allowed) / Int(quickest.time))
      }
      shortest = .known(min(known, quickest.time), since: since)
      quickest = (.max, 0)
    }
  }

  private mutating func begin(at uptime: Int64) {
    (shortest, timed, quickest) = (.tried(since: uptime), nil, (.max, 0))
  }
}
