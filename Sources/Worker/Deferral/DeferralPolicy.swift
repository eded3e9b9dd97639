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
package struct DeferralPolicy: Sendable {
  /// A paused broadcast with deferred pushes.
  private struct Pause: Sendable {
    /// Uptime when this worker learned of it.
    let since: Int64
    /// Uptime by which one of its records must have come back.
    let until: Int64
  }

  /// The longest deferral for an outage.
  package static let longestDelay = Duration.seconds(300)
  /// How long a push waits for a worker that has a sender for its platform.
  static let unservedDelay = Duration.seconds(60)
  /// The rate, in pushes per second, at which deferred pushes of a stopped platform come back, only to be deferred
  /// again. Each one costs Kafka two more records.
  private static let returnRate = 100
  /// The highest rate of returns, so that no push returns long after the outage.
  private static let highestReturnRate = 1000
  /// The assumed time between successive pushes to one device when the service works.
  private static let answerTime = Duration.milliseconds(50)
  /// The longest deferral of a push that would expire before its turn.
  private static let longestLastDelay = Duration.seconds(60)
  /// How long before its expiry a push stops waiting for older ones.
  static let lastCall = Duration.seconds(2)

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
  /// While the platform is stopped, a push stays away for a round: the time in which all waiting pushes come back once.
  /// It comes back behind the push `before` it to the same device, if there is one that is away until that uptime. A
  /// push that would expire before its turn comes back earlier, and more often as its expiry approaches.
  func outageDelay(
    _ lane: borrowing PlatformLane, before: Int64?, isBroadcast: Bool, life: Duration, at now: Moment
  ) -> Duration? {
    let round = lane.isStopped ? timeOfRound(lane, isBroadcast: isBroadcast, at: now) : .zero
    let behind = before.map { .milliseconds($0 - now.uptime) + Self.answerTime } ?? .zero
    let delay = max(shortest, min(max(round, behind), Self.longestDelay))
    let remaining = life - Self.lastCall
    if delay + lateness(of: delay) < remaining { return delay }
    // Late in its life, and rarely: whenever the service comes back, the push gets one more attempt.
    let last = max(shortest, min(remaining / 4 * 3, Self.longestLastDelay))
    return last + lateness(of: last) < remaining ? last : nil
  }

  /// How long it takes until all pushes that wait for a stopped platform have come back once: at `returnRate`, or
  /// faster if that would take longer than half of the outage so far, but never above the highest rate. The order does
  /// not count pushes of broadcasts: their round is half of the outage.
  private func timeOfRound(_ lane: borrowing PlatformLane, isBroadcast: Bool, at now: Moment) -> Duration {
    let half = Duration.milliseconds(now.uptime - lane.breaker.openedAt) / 2
    return isBroadcast ? half : Self.round(of: lane.order.count, isFull: lane.order.isFull, half: half)
  }

  /// The round of `count` pushes of single sends. `half`: half of the outage so far. `isFull`: more may wait, because a
  /// full order does not know how many.
  package static func round(of count: Int, isFull: Bool, half: Duration) -> Duration {
    isFull ? half : max(.seconds(count) / highestReturnRate, min(.seconds(count) / returnRate, half))
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
  /// It applies to the sends to one user: they share a record key, so one worker has them all.
  func orderedPush(_ index: Int) -> DeferredOrder.Push? {
    guard let send, !isBroadcast, send.audience.isOneUser else { return nil }
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
