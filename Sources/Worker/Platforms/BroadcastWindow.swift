/// Limits a platform's broadcast pushes in flight, so that single sends need not wait behind them.
///
/// A push that was handed over passes queues in fixed order: an event loop's, a socket's, the service's own. Where the
/// machine limits the rate, more pushes in flight only make these queues longer. So while single sends arrive, the
/// window follows the time to answer, by two known algorithms:
///
/// - TCP Vegas: answers that take longer than the shortest time show that there is a queue. Then the window shrinks;
///   otherwise it grows. The quickest of some answers decides, because a queue delays all of them and chance does not.
/// - BBR: the shortest time can be measured only with few pushes in flight. So from time to time few are.
///
/// A service far away takes longer than these queues: it gets the widest window. Times are uptimes in milliseconds.
struct BroadcastWindow: Sendable {
  /// How long after a single send's push others are expected, and how long a shortest time is
  /// valid.
  static let memory: Int64 = 10_000
  /// The longest measurement with few pushes in flight: earlier pushes are answered by then, or
  /// most never will be.
  static let trial: Int64 = 1_000
  /// A service whose shortest time is at least this is far away.
  static let farAway: Int64 = 20
  /// The number of consecutive answers judged by the quickest: a queue delays all of them, chance
  /// does not.
  static let round = 8

  private enum Shortest {
    /// There are no single sends.
    case unneeded
    /// It is being measured.
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
  /// The quickest answer since the last change of the window, and the number of answers.
  private var quickest = (time: Int64.max, of: 0)

  /// `most`: at least 1.
  init(most: Int) {
    self.most = most
    least = max(1, most / 8)
    few = max(1, most / 64)
    size = most
  }

  /// How many may be in flight.
  /// Call it only while pushes of broadcasts wait: without them a measurement would only waste its time. `singleAt`:
  /// when the last push of a single send was handed over, on any platform.
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

  /// Notes a push handed over. `inFlight`: the unanswered pushes of broadcasts, including this one.
  mutating func submitted(_ ticket: Ticket, inFlight: Int, at uptime: Int64) {
    // A slow answer says little, so it is not timed to its end.
    if let timed, uptime - timed.submittedAt < Self.trial { return }
    switch shortest {
    case .unneeded: timed = nil
    case .tried: timed = inFlight <= few ? (ticket, uptime) : nil
    case .known: timed = (ticket, uptime)
    }
  }

  /// Notes the end of a push.
  /// `isAnswer`: the service accepted it. `isMostlyBroadcast`: most unanswered pushes belong to broadcasts; otherwise
  /// broadcasts are not the cause of the queue.
  mutating func ended(_ ticket: Ticket, isAnswer: Bool, isMostlyBroadcast: Bool, at uptime: Int64) {
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
      if quickest.time <= allowed || !isMostlyBroadcast {
        size = min(most, size + max(1, size / 4))
      } else {
        // The pushes answered in the allowed time. Not less than half: a few answers may all be slow by chance.
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
