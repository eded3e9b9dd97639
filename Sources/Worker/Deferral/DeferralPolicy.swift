import FanfareCore
import RDKafka

/// When a push leaves the worker's memory for a retry topic, and for how long.
///
/// A push is deferred when it would wait longer than `longestRest`, when it waits for a stopped platform or behind
/// others in an outage, when it exceeds a quota, when its broadcast is paused and room is short, and when its partition
/// is given back.
///
/// State: the time of the last sweep, and the pauses this worker knows of. A pause is *known* from the first deferral
/// that it causes until the broadcast runs or is cancelled, or until none of its records has come back in time.
///
/// Invariant: a known pause expires after it began.
struct DeferralPolicy: Sendable {
  /// A paused broadcast with deferred pushes.
  private struct Pause: Sendable {
    /// Uptime when this worker learned of it.
    let since: Int64
    /// Uptime by which one of its records must have come back.
    let until: Int64
  }

  /// The longest deferral for an outage.
  static let longestDelay = Duration.seconds(300)
  /// How long a push waits for a worker that has a sender for its platform.
  static let unservedDelay = Duration.seconds(60)
  /// The rate, in pushes per second, at which deferred pushes of a stopped platform come back, only to be deferred
  /// again. Each one costs Kafka two more records.
  private static let returnRate = 100
  /// The highest rate of returns, so that no push returns long after the outage. Pushes that had no room after the
  /// outage return at this rate.
  private static let highestReturnRate = 1000
  /// The assumed time between successive pushes to one device when the service works.
  private static let answerTime = Duration.milliseconds(50)
  /// The longest deferral of a push that would expire before its turn.
  private static let longestLastDelay = Duration.seconds(60)
  /// How long before its expiry a push stops waiting for older ones.
  static let lastCall = Duration.seconds(2)
  /// How often to check a push that waits in memory if no push before it ends, in milliseconds.
  /// Pushes that never end are rare.
  static let patience: Int64 = 10_000
  /// The same for a push that the order does not remember, and that therefore gets no wake-up.
  static let shortPatience: Int64 = 250

  private let topics: Topics
  let longestRest: Duration
  private var sweepDue: Int64 = 0
  private var pauses: [BroadcastID: Pause] = [:]

  init(topics: Topics, longestRest: Duration) {
    self.topics = topics
    self.longestRest = longestRest
  }

  /// The shortest delay of a retry topic.
  var shortest: Duration { topics.retries[0].delay }
  var longest: Duration { topics.retries[topics.retries.count - 1].delay }
  /// How many pauses are known.
  var knownPauses: Int { pauses.count }

  /// Whether the sweep over all items is due, which happens every second.
  mutating func isSweepDue(at uptime: Int64) -> Bool {
    guard uptime >= sweepDue else { return false }
    sweepDue = uptime + 1000
    return true
  }

  /// How late a record deferred for this delay may come back.
  func lateness(of delay: Duration) -> Duration {
    RetryTopic.lateness(of: topics.retry(for: delay).delay)
  }

  /// The latest time at which a record that is deferred for the shortest delay comes back.
  func backAgain(at now: Moment) -> UnixTime { now.wall + shortest + RetryTopic.lateness(of: shortest) }

  /// The longest time a device rests in memory.
  /// A single send delays no other; but a resting page holds up its whole broadcast, and a readmitted record holds up
  /// deferred records of other pages.
  func longestRest(isBroadcast: Bool) -> Duration { isBroadcast ? min(longestRest, .seconds(1)) : longestRest }

  // Outages.

  /// How long to defer a push that waits for its platform; nil: it would expire even so.
  ///
  /// Pushes to one device come back in their order, each a short gap behind the one before it
  /// (`DeferredOrder.Place.dueBefore`): a push that met an older one still deferred would have to be deferred again.
  /// While the platform is stopped, a push stays away for at least a round: the time in which all waiting pushes come
  /// back once. A push that would expire before its turn comes back earlier, and more often as its expiry approaches.
  func outageDelay(
    _ lane: borrowing PlatformLane, _ place: DeferredOrder.Place?, isBroadcast: Bool, life: Duration, at now: Moment
  ) -> Duration? {
    let round = max(shortest, min(timeOfRound(lane, isBroadcast: isBroadcast, at: now), Self.longestDelay))
    var delay = round
    if let place, let before = place.dueBefore {
      // The pushes of a device share the round, but follow one another closely when they are few.
      let gap =
        lane.isStopped
        ? min(round / place.count, .seconds(1) / Self.returnRate * lane.order.deviceCount) : Self.answerTime
      let away = Duration.milliseconds(before - now.uptime)
      let behind = min(away + gap, max(away, round * 2), Self.longestDelay)
      delay = max(lane.isStopped && place.isRemembered ? round : shortest, behind)
    }
    let remaining = life - Self.lastCall
    if delay + lateness(of: delay) < remaining { return delay }
    // Late in its life, and rarely: whenever the service comes back, the push gets one more attempt.
    let last = max(shortest, min(remaining / 4 * 3, Self.longestLastDelay))
    return last + lateness(of: last) < remaining ? last : nil
  }

  /// How long it takes until all pushes that wait for the platform have come back once.
  ///
  /// After the outage they come back at the highest rate. During it they come back at `returnRate`, or faster if the
  /// round would take longer than half of the outage so far, but never above the highest rate. The order does not count
  /// pushes of broadcasts: their round is half of the outage.
  private func timeOfRound(_ lane: borrowing PlatformLane, isBroadcast: Bool, at now: Moment) -> Duration {
    let count = lane.order.count
    func time(at rate: Int) -> Duration { .seconds(count) / rate }
    guard lane.isStopped else { return time(at: Self.highestReturnRate) }
    let half = Duration.milliseconds(now.uptime - lane.breaker.openedAt) / 2
    if isBroadcast { return half }
    // A full order does not know how many pushes wait.
    return max(time(at: Self.highestReturnRate), lane.order.isFull ? half : min(time(at: Self.returnRate), half))
  }

  /// How many older pushes to a device may precede a push that waits in memory; nil: any number.
  ///
  /// None while the platform is stopped or reading has run far ahead. With half of the room taken, the devices share
  /// the other half: each keeps its oldest pushes in memory, so that returning pushes find the ones they wait for. With
  /// three quarters taken, only pushes that are already in memory (`isHere`) stay, until the next check.
  func longestQueue(
    _ lane: borrowing PlatformLane, isHere: Bool, isFarBehind: Bool, held: HeldMemory, typical: RecordSizeEstimate,
    limits: WorkerConfiguration.Limits
  ) -> Int? {
    if lane.isStopped || isFarBehind || (held.exceeds(quarters: 3, of: limits) && !isHere) { return 0 }
    guard held.exceeds(quarters: 2, of: limits) else { return nil }
    let half = min(limits.maximumRecords, typical.records(in: limits.maximumBytes)) / 2
    return max(1, half / max(1, lane.order.deviceCount))
  }

  // Pauses.

  /// How long to defer pushes of a paused broadcast: half of the time this worker has known of the pause, and at most
  /// five minutes. So few records circulate however long the pause lasts. After its end a record comes back late by at
  /// most half of the pause; by more only if the broadcast was resumed and paused again without this worker's noticing.
  mutating func delay(ofPaused broadcast: BroadcastID, until expiresAt: UnixTime, at now: Moment) -> Duration {
    let known = pauses[broadcast]
    let since = known?.since ?? now.uptime
    let delay = max(
      shortest, min(.milliseconds(now.uptime - since) / 2, longest, Self.longestDelay, expiresAt - now.wall))
    let back = now.uptime + (delay + lateness(of: delay) + longestRest).milliseconds
    pauses[broadcast] = Pause(since: since, until: max(known?.until ?? back, back))
    return delay
  }

  /// Forgets the pause of a broadcast that runs or is cancelled: its next pause is another one.
  mutating func endPause(of broadcast: BroadcastID) { pauses[broadcast] = nil }

  /// Forgets pauses from which no record has come back in time.
  /// Other workers own those records by now; if one returns here later, it may belong to another pause.
  mutating func forgetPauses(at now: Moment) {
    guard !pauses.isEmpty else { return }
    pauses = pauses.filter { now.uptime < $0.value.until }
  }

  func checkInvariants() -> [String] {
    pauses.values.contains { $0.until <= $0.since } ? ["a pause ends before it begins"] : []
  }
}

extension WorkItem {
  /// The item's push to a device as `DeferredOrder` knows it; nil if the order does not apply to it.
  ///
  /// The order remembers the sends to one user, because they share a record key, so that one worker has them all.
  /// Pushes of other sends only wait for those. `isRemembered`: nil for these others, too.
  func orderedPush(_ index: Int, isRemembered: Bool = true) -> DeferredOrder.Push? {
    guard let send, !isBroadcast, !isRemembered || send.audience.isOneUser else { return nil }
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
