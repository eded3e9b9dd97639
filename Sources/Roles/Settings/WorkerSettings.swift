import SettingsTable
import Worker

/// The limits and times of one worker process.
struct WorkerSettings: Sendable {
  @Setting(example: "fanfare.workers", "all workers share it; by default <kafka.topicPrefix>.workers")
  var group: String?
  @Setting(example: "worker-1", "a name that stays the same across restarts: static membership") var instance: String?
  @Setting(in: 1...262_144, "records fetched and not yet settled")
  var maximumRecords = standard.limits.maximumRecords
  @Setting(in: 65_536...1_073_741_824, "size of these records in Kafka; in memory they need several times as much")
  var maximumBytes = standard.limits.maximumBytes
  @Setting(in: 1...1_000_000, "pushes in flight: handed to push services and not answered")
  var maximumPushes = standard.limits.maximumPushes
  @Setting(
    in: 1...25_000,
    "devices in a page of a broadcast plus the head start of the next page: the most that a crash "
      + "repeats")
  var pageDevices = standard.broadcasts.pageDevices
  @Setting("a broadcast is paused when a larger share of the devices of a page fails")
  var broadcastFailureShare = standard.broadcasts.broadcastFailureShare
  @Setting(in: 1...2_419_200, "for sends without a time to live")
  var defaultTimeToLive = standard.times.defaultTimeToLive
  @Setting(in: 0.1...3600, "from SIGTERM until the pushes in flight are abandoned")
  var drainSeconds = standard.times.drainDeadline
  @Setting(in: 0.1...3600, "a push that must wait longer is deferred to a retry topic")
  var longestRest = standard.times.longestRest

  static let keys = SettingsSection(
    "worker", WorkerSettings(),
    // They follow from the streams of a service's connections, and from what the services ask of their senders.
    retired: [
      "maximumPushesPerSender": "at most 5,000 pushes are in flight for one platform of one hub",
      "maximumBulkPushesPerSender": "at most 1,000 of them belong to broadcasts",
      "maximumAttempts": "a push fails after 8 attempts",
    ])
  private static let standard = WorkerConfiguration()

  var configuration: WorkerConfiguration {
    var worker = Self.standard
    worker.limits.maximumRecords = maximumRecords
    worker.limits.maximumBytes = maximumBytes
    worker.limits.maximumPushes = maximumPushes
    worker.broadcasts.pageDevices = pageDevices
    worker.broadcasts.broadcastFailureShare = broadcastFailureShare
    worker.times.defaultTimeToLive = defaultTimeToLive
    worker.times.drainDeadline = drainSeconds
    worker.times.longestRest = longestRest
    return worker
  }
}
