import SettingsTable
import Worker

/// The group, limits and times of one worker process.
struct WorkerSettings: Sendable {
  private(set) var configuration = Self.standard
  let group: String?
  let instance: String?

  private static let standard = WorkerConfiguration()

  struct Keys: Sendable {
    @Setting(example: "fanfare.workers", "all workers share it; by default <kafka.topicPrefix>.workers")
    var group: String?
    @Setting(example: "worker-1", "a name that stays the same across restarts: static membership") var instance: String?
    @Setting(standard, \.limits.maximumRecords, in: 1...262_144, "records fetched and not yet settled")
    var maximumRecords
    @Setting(
      standard, \.limits.maximumBytes, in: 65_536...1_073_741_824,
      "size of these records in Kafka; in memory they need several times as much")
    var maximumBytes
    @Setting(standard, \.limits.maximumPushes, in: 1...1_000_000, "pushes in flight: handed over and not answered")
    var maximumPushes
    @Setting(
      standard, \.broadcasts.pageDevices, in: 1...25_000,
      "devices in a page of a broadcast plus the head start of the next page: the most that a crash repeats")
    var pageDevices
    @Setting(
      standard, \.broadcasts.broadcastFailureShare,
      "a broadcast is paused when a larger share of the devices of a page fails")
    var broadcastFailureShare
    @Setting(standard, \.times.defaultTimeToLive, in: 1...2_419_200, "for sends without a time to live")
    var defaultTimeToLive
    @Setting(standard, \.times.drainDeadline, in: 0.1...3600, "from SIGTERM until the pushes in flight are abandoned")
    var drainSeconds
    @Setting(standard, \.times.longestRest, in: 0.1...3600, "a push that must wait longer goes to a retry topic")
    var longestRest
  }

  static let keys = SettingsSection(
    "worker", Keys(),
    // They follow from the streams of a service's connections, and from what the services ask of their senders.
    retired: [
      "maximumPushesPerSender": "at most 5,000 pushes are in flight for one platform of one hub",
      "maximumBulkPushesPerSender": "at most 1,000 of them belong to broadcasts",
      "maximumAttempts": "a push fails after 8 attempts",
    ])

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys, into: &configuration)
    (group, instance) = (keys.group, keys.instance)
  }
}
