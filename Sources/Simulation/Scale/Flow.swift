import FanfareCore
import RDKafka
import Worker

/// The parts of a deployment that workers share, and the counts of a run, as flows: per step, not per push.
final class Flow {
  struct Counts {
    /// Single sends that front ends have accepted, and their records that settled.
    var accepted = 0
    var settled = 0
    /// Pushes that a later owner of their partition made again, at most.
    var repeated = 0
    /// Records written to retry topics, and records that came back.
    var deferred = 0
    var returned = 0
    /// Commits, and those of them while the group was forming.
    var commits = 0
    var interim = 0
    var lookUps = 0
    var lookUpRequests = 0
    /// Devices and pages of broadcasts that are done.
    var devices = 0
    var pages = 0
    /// Batches that producers have sent.
    var batches = 0.0
    var bytes = 0.0
  }

  /// A partition of the sends topic, and its companion.
  struct Partition {
    var backlog = CohortQueue()
    var segments: [Segment] = []
    /// Since when no worker reads it; nil while one does.
    var idleSince: World.Time?
    /// Until when it has no leader.
    var downUntil: World.Time = 0
  }

  /// Consecutive pages of a broadcast.
  struct Segment {
    let devicesPerPage: Int
    /// Pages that are not finished.
    var pages: Int
    /// Whether one of them is open.
    var isBusy = false
  }

  let profile: ScaleProfile
  let world: World
  /// The length of a step in microseconds and in seconds.
  let step: World.Time
  let seconds: Double
  let sizes = RecordSizes()
  var services: [ServiceModel]
  var registry: Station
  var kafka: Station
  var partitions: [Partition]
  var counts = Counts()
  /// Single sends that were handed over and that their partition's next owner takes again.
  var lost = 0
  /// The pauses of partitions that changed their owner.
  var pauses = LatencyHistogram()
  /// Whether there has been a broadcast.
  var hasBroadcasts = false
  /// Whether the group of workers is forming.
  var isForming = false
  /// The statuses, and the records written to and released from retry topics, of this step.
  var statuses = 0
  var deferrals = 0
  var returns = 0
  /// From acceptance to the hand-over of a push, without any queue.
  private(set) var passage: World.Time = 0
  /// From an answer to the settled offset, in steps.
  private(set) var settleSteps = 1
  /// The longest time that answers of the slowest service usually take.
  let tail: World.Time

  init(_ profile: ScaleProfile, in world: World) {
    (self.profile, self.world) = (profile, world)
    step = World.Time(profile.step)
    seconds = profile.step.seconds
    services = profile.services.map { ServiceModel($0, transaction: profile.costs.transaction) }
    registry = Station(
      "registry", machines: profile.registries, cores: profile.databaseCores, delay: World.Time(profile.lookUp))
    kafka = Station(
      "brokers", machines: profile.brokers, cores: profile.brokerCores, delay: World.Time(profile.acknowledgement))
    partitions = Array(repeating: Partition(), count: profile.partitions)
    tail = services.map(\.tail).max() ?? 0
  }

  func begin() {
    registry.begin(seconds, at: world.now)
    kafka.begin(seconds, at: world.now)
    let linger = World.Time(profile.frontEndLinger)
    // A look-up waits for half of the one before, on average.
    passage = linger + kafka.latency + World.Time(profile.delivery) + registry.latency * 3 / 2
    settleSteps = steps(World.Time(profile.worker.times.statusLinger) + kafka.latency)
    (statuses, deferrals, returns) = (0, 0, 0)
  }

  /// The number of steps of a time, at least one.
  @inline(__always)
  func steps(_ time: World.Time) -> Int { max(1, Int((time + step / 2) / step)) }

  /// What the step's records have cost the brokers. `sends`: the records of front ends.
  func produce(sends: Int, workers: Int) {
    produce(
      sends, of: sizes.send, by: profile.frontEnds, linger: profile.frontEndLinger)
    produce(statuses, of: sizes.status, by: workers, linger: profile.worker.times.statusLinger)
    produce(deferrals, of: sizes.retry, by: workers, linger: profile.worker.times.statusLinger)
    // Pumps release the records of a partition together.
    produce(returns, of: sizes.send, by: workers, linger: .seconds(5))
  }

  private func produce(_ records: Int, of size: Double, by producers: Int, linger: Duration) {
    guard records > 0, producers > 0 else { return }
    let rate = Double(records) / seconds / Double(producers)
    let batches =
      RecordSizes.batches(of: rate, over: profile.partitions, linger: linger) * Double(producers) * seconds
    let bytes = Double(records) * size
    counts.batches += batches
    counts.bytes += bytes
    kafka.work(batches * profile.costs.batch + bytes / 1_000 * profile.costs.kilobyte)
  }

  /// The sends that wait in the log.
  var lag: Int { partitions.reduce(0) { $0 + $1.backlog.count } }

  /// The age of the oldest send that waits in the log, in microseconds.
  func age(at step: Int) -> World.Time {
    World.Time(partitions.reduce(0) { max($0, step - ($1.backlog.oldest ?? step)) }) * self.step
  }
}
