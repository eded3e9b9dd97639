import FanfareCore
import RDKafka

/// When a push leaves the worker's memory for a retry topic, and for how long.
///
/// A push is deferred when it would wait longer than `longestRest`, when it waits for a stopped platform or behind
/// others in an outage, when it exceeds what a quota lets through, when its broadcast is paused and room is short, and
/// when its partition is given back. Without retry topics nothing is deferred; a page's record from a topic that is no
/// longer configured is held in memory instead.
///
/// State: when everything was looked through last, and the pauses this worker knows of. A pause is *known* from the
/// first deferral because of it until the broadcast runs or is cancelled, or nothing of it has come back in time.
///
/// Invariant: a known pause is forgotten at some time after it began.
struct DeferralPolicy: Sendable {
  /// A paused broadcast of which something was deferred.
  private struct Pause: Sendable {
    /// Uptime when this worker learned of it.
    let since: Int64
    /// By then something of it must have come back.
    let until: Int64
  }

  /// The longest deferral for an outage.
  static let longestDelay = Duration.seconds(300)
  /// How many deferred pushes of a stopped platform come back a second, only to be deferred again: each costs Kafka two
  /// more records.
  private static let rounds = 100
  /// The most that may, so that none comes back long after the outage; and that many do when they had no room after it.
  private static let mostRounds = 1000
  /// The time for one push after the other to a device when the service works.
  private static let answerTime = Duration.milliseconds(50)
  /// The longest deferral of a push that would expire before its turn.
  private static let longestLastDelay = Duration.seconds(60)
  /// This long before it would expire, a push stops waiting for older ones.
  static let lastCall = Duration.seconds(2)
  /// How often a push that waits in memory is looked at although none of those before it has ended, in milliseconds:
  /// that they never will is rare.
  static let patience: Int64 = 10_000
  /// The same for a push that is not remembered in the order, so that nothing wakes it.
  static let shortPatience: Int64 = 250
  /// The shortest time for which a page's deferred record is held in memory when there are no retry topics.
  static let shortestHold = Duration.seconds(1)

  private let topics: Topics
  let longestRest: Duration
  private var sweepDue: Int64 = 0
  private var pauses: [BroadcastID: Pause] = [:]

  init(topics: Topics, longestRest: Duration) {
    self.topics = topics
    self.longestRest = longestRest
  }

  /// The shortest delay of a retry topic; nil: there are no retry topics, and nothing can be deferred.
  var shortest: Duration? { topics.retries.first?.delay }
  var longest: Duration? { topics.retries.last?.delay }
  var hasRetryTopics: Bool { !topics.retries.isEmpty }
  /// How many pauses are known.
  var knownPauses: Int { pauses.count }

  /// Whether everything is to be looked through now, as it is every second.
  mutating func isSweepDue(at uptime: Int64) -> Bool {
    guard uptime >= sweepDue else { return false }
    sweepDue = uptime + 1000
    return true
  }

  /// How much later than after this delay a deferred record may come back.
  func lateness(of delay: Duration) -> Duration {
    topics.retry(for: delay).map { RetryPump.lateness(of: $0.delay) } ?? .zero
  }

  /// When a record that is deferred for the shortest delay is back at the latest.
  func backAgain(at now: Moment) -> UnixTime? { shortest.map { now.wall + $0 + RetryPump.lateness(of: $0) } }

  /// The longest that a device rests in memory. A single send delays no other; but all of a broadcast waits for its
  /// page, and deferred records of other pages wait for a readmitted one.
  func longestRest(isBulk: Bool) -> Duration { isBulk ? min(longestRest, .seconds(1)) : longestRest }

  // Outages.

  /// How long a push that waits for its platform is deferred: until right behind the push before it to the same device,
  /// so that all come back in their order and hardly any meets an older one that is still away. While the platform is
  /// stopped, it is at least a round after it was here last. A push that would expire before its turn comes back
  /// earlier, and ever more often. nil: it would expire even so, or there are no retry topics.
  func outageDelay(
    _ lane: borrowing PlatformLane, _ place: DeferredOrder.Place?, isBulk: Bool, life: Duration, at now: Moment
  ) -> Duration? {
    guard let shortest else { return nil }
    let round = max(shortest, min(timeOfRound(lane, isBulk: isBulk, at: now), Self.longestDelay))
    var delay = round
    if let place, let before = place.dueBefore {
      // The pushes of a device share the round, but follow one another closely when they are few.
      let gap =
        lane.isStopped
        ? min(round / place.count, .seconds(1) / Self.rounds * lane.order.deviceCount) : Self.answerTime
      let away = Duration.milliseconds(before - now.uptime)
      let behind = min(away + gap, max(away, round * 2), Self.longestDelay)
      delay = max(lane.isStopped && place.isRemembered ? round : shortest, behind)
    }
    let remaining = life - Self.lastCall
    if delay + lateness(of: delay) < remaining { return delay }
    // Late in its life, and so seldom: whenever the service comes back, it is tried once more.
    let last = max(shortest, min(remaining / 4 * 3, Self.longestLastDelay))
    return last + lateness(of: last) < remaining ? last : nil
  }

  /// How long all pushes that wait for the platform take to come back once. Few come back soon after the outage; many
  /// take longer, to leave room for others; but no longer than half of the outage so far, unless too many would come
  /// back a second. For broadcasts, which are not counted here, it is that half.
  private func timeOfRound(_ lane: borrowing PlatformLane, isBulk: Bool, at now: Moment) -> Duration {
    let count = lane.order.count
    func time(at rounds: Int) -> Duration { .seconds(count) / rounds }
    guard lane.isStopped else { return time(at: Self.mostRounds) }
    let half = Duration.milliseconds(now.uptime - lane.breaker.openedAt) / 2
    if isBulk { return half }
    // A full order does not know how many there are.
    return max(time(at: Self.mostRounds), lane.order.isFull ? half : min(time(at: Self.rounds), half))
  }

  /// How many older pushes to a device a push may have and still wait in memory; nil: any number.
  ///
  /// None while the platform is stopped or reading has run far ahead. With half of the room taken, the devices share
  /// the other half, so that each keeps its oldest pushes here and those that come back meet the ones they wait for;
  /// with three quarters taken, only pushes that are here already (`isHere`) stay, until they are looked at.
  func longestQueue(
    _ lane: borrowing PlatformLane, isHere: Bool, isFarBehind: Bool, held: HeldMemory, typical: RecordSizeEstimate,
    limits: WorkerConfiguration.Limits
  ) -> Int? {
    guard hasRetryTopics else { return nil }
    if lane.isStopped || isFarBehind || (held.exceeds(quarters: 3, of: limits) && !isHere) { return 0 }
    guard held.exceeds(quarters: 2, of: limits) else { return nil }
    let half = min(limits.maximumRecords, typical.records(in: limits.maximumBytes)) / 2
    return max(1, half / max(1, lane.order.deviceCount))
  }

  // Pauses.

  /// How long deferred pushes of a paused broadcast stay away: half of the time for which this worker knows of the
  /// pause, and five minutes at most. So few records circulate however long the pause lasts, and they come back late by
  /// half of it at most, unless the broadcast ran meanwhile unknown to this worker.
  mutating func delay(ofPaused broadcast: BroadcastID, until expiresAt: UnixTime, at now: Moment) -> Duration {
    let (shortest, longest) = (shortest ?? Self.shortestHold, longest ?? longestRest)
    let known = pauses[broadcast]
    let since = known?.since ?? now.uptime
    let delay = max(
      shortest, min(.milliseconds(now.uptime - since) / 2, longest, Self.longestDelay, expiresAt - now.wall))
    let back = now.uptime + (delay + lateness(of: delay) + longestRest).milliseconds
    pauses[broadcast] = Pause(since: since, until: max(known?.until ?? back, back))
    return delay
  }

  /// The broadcast runs or is cancelled: its next pause is another one.
  mutating func endPause(of broadcast: BroadcastID) { pauses[broadcast] = nil }

  /// Forgets pauses of which nothing has come back in time: other workers have it, and when something comes again, it
  /// may be another pause.
  mutating func forgetPauses(at now: Moment) {
    guard !pauses.isEmpty else { return }
    pauses = pauses.filter { now.uptime < $0.value.until }
  }

  #if DEBUG
  func checkInvariants() -> [String] {
    pauses.values.contains { $0.until <= $0.since } ? ["a pause ends before it begins"] : []
  }
  #endif
}

extension WorkItem {
  /// How the item's push to a device is known in the order of deferred pushes; nil: the order does not matter to it.
  /// `isRemembered`: only if it is remembered there itself, as sends to one user are: they share one record key. Others
  /// only wait for those.
  func orderedPush(_ index: Int, isRemembered: Bool = true) -> DeferredOrder.Push? {
    guard let send, !isBulk, !isRemembered || send.audience.isOneUser else { return nil }
    return DeferredOrder.Push(
      id: send.identity, acceptedAt: send.acceptedAt, device: devices[index].target.registration)
  }
}

extension Audience {
  fileprivate var isOneUser: Bool {
    switch self {
    case .user: true
    case .tag(let tag): Tag.user(of: tag) != nil
    case .registration, .device, .tags, .expression, .everyone: false
    }
  }
}
