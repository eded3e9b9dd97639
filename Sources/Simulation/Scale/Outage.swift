import FanfareCore
import RDKafka
import Worker

/// The pushes of one worker to one service while that service fails: its circuit breaker, and the pushes that are
/// deferred to the retry topics and come back.
struct Outage {
  private let topics = Topics()
  private let circuit: CircuitPolicy
  private let probeInterval: World.Time
  private let capacity: Int
  /// When the first push failed, and when the circuit opened.
  private var failing: World.Time?
  private var openedAt: World.Time?
  private var nextProbe: World.Time = 0
  /// Pushes that failed before the circuit opened. They hold their records.
  private(set) var resting = CohortQueue()
  /// Records in the retry topics, by the step in which they are due; the second wheel has the sum of their `born`.
  private var away: (count: Wheel, born: Wheel)?
  /// Due records that the pumps have not copied yet.
  private(set) var due = CohortQueue()
  /// Records that are back in the sends topic.
  var returned = CohortQueue()

  init(_ configuration: WorkerConfiguration) {
    circuit = configuration.circuit
    probeInterval = World.Time(configuration.times.outageProbeInterval)
    capacity = configuration.limits.maximumOrdered
  }

  /// The deferred pushes that have not come back to the sends topic.
  var awayCount: Int { (away?.count.count ?? 0) + due.count }
  var waiting: Int { resting.count + awayCount + returned.count }
  var isOpen: Bool { openedAt != nil }

  /// Notes whether the service works. Returns whether pushes may be handed over.
  mutating func note(isDown: Bool, at now: World.Time) -> Bool {
    if openedAt != nil {
      guard now >= nextProbe else { return false }
      nextProbe = now + probeInterval
      if !isDown { (openedAt, failing) = (nil, nil) }
      return !isDown
    }
    guard isDown else {
      failing = nil
      return true
    }
    let since = failing ?? now
    failing = since
    if now - since >= World.Time(circuit.after) { (openedAt, nextProbe) = (now, now + probeInterval) }
    return false
  }

  /// Keeps pushes that failed.
  mutating func rest(_ cohort: Cohort) { resting.append(cohort) }
  mutating func popResting() -> Cohort? { resting.pop(.max) }

  /// Writes pushes to a retry topic.
  mutating func deferPushes(_ cohort: Cohort, at step: Int, in flow: Flow) {
    let delay = delay(at: flow.world.now)
    let topic = topics.retry(for: delay).delay
    let wait = flow.steps(World.Time(delay) + World.Time(RetryTopic.lateness(of: topic)) / 2)
    if away == nil {
      let longest = flow.steps(World.Time(DeferralPolicy.longestDelay) + .seconds(10))
      away = (Wheel(steps: longest), Wheel(steps: longest))
    }
    away?.count.add(cohort.count, in: wait, after: step)
    away?.born.add(cohort.count * cohort.born, in: wait, after: step)
  }

  /// For how long a push is deferred now.
  private func delay(at now: World.Time) -> Duration {
    guard let openedAt else { return topics.retries[0].delay }
    let round = DeferralPolicy.round(
      of: min(awayCount, capacity), isFull: awayCount >= capacity, half: .microseconds(now - openedAt) / 2)
    return min(max(topics.retries[0].delay, round), DeferralPolicy.longestDelay)
  }

  /// Releases the records that are due, as far as the brokers take them.
  mutating func release(at step: Int, in flow: Flow) {
    guard away != nil else { return }
    if let count = away?.count.take(at: step), let born = away?.born.take(at: step), count > 0 {
      due.append(Cohort(born: born / count, count: count))
    }
    guard due.count > 0 else { return }
    var room = flow.kafka.allowance(cost: flow.profile.costs.kilobyte)
    while let cohort = due.pop(room) {
      room -= cohort.count
      returned.append(cohort)
      flow.returns += cohort.count
      flow.counts.returned += cohort.count
    }
  }
}
