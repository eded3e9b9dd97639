import Worker

/// The limits and times of one worker process.
///
/// - `worker.group` (text): the consumer group that all workers share; default `<kafka.topicPrefix>.workers`.
/// - `worker.instance` (text): a name that survives restarts, for static membership: a restart then moves no partition.
/// - `worker.maximumRecords` (1…262144, default 5000): the most records consumed and not settled.
/// - `worker.maximumBytes` (65536…1073741824, default 4194304): the most bytes of these records as stored in Kafka.
///   Decoded and rendered they take several times as much memory.
/// - `worker.maximumPushes` (1…1000000, default 10000): the most pushes in flight.
/// - `worker.maximumPushesPerSender` (1…1000000, default 5000): the most pushes in flight for one platform of one hub.
/// - `worker.maximumBulkPushesPerSender` (1…1000000, default 1000): the most of them that belong to broadcasts. The
///   limit shrinks while single sends arrive, as far as that does not slow the broadcasts.
/// - `worker.pageDevices` (1…25000, default 5000): the target number of devices in a page of a broadcast together with
///   the head start of the next one; a crash repeats at most these pushes.
/// - `worker.broadcastFailureShare` (0…1, default 0.5): the share of failed devices of a page that pauses a broadcast.
/// - `worker.defaultTimeToLive` (seconds, default 86400): the time to live of a send without one of its own.
/// - `worker.drainSeconds` (seconds, default 20): the time limit for settling pushes in flight after SIGTERM.
/// - `worker.longestRest` (seconds, default 10): the longest wait in memory; a longer one goes through a retry topic.
/// - `worker.maximumAttempts` (1…100, default 8): the most attempts at one push.
struct WorkerSettings: Sendable {
  let configuration: WorkerConfiguration
  let group: String?
  let instance: String?

  init(from reader: SettingsReader) throws(SettingsError) {
    var worker = WorkerConfiguration()
    group = try reader.optionalString("worker.group")
    instance = try reader.optionalString("worker.instance")
    worker.limits.maximumRecords = try reader.int(
      "worker.maximumRecords", default: worker.limits.maximumRecords, in: 1...262_144)
    worker.limits.maximumBytes = try reader.int(
      "worker.maximumBytes", default: worker.limits.maximumBytes, in: 65_536...1_073_741_824)
    worker.limits.maximumPushes = try reader.int(
      "worker.maximumPushes", default: worker.limits.maximumPushes, in: 1...1_000_000)
    worker.limits.maximumPushesPerSender = try reader.int(
      "worker.maximumPushesPerSender", default: worker.limits.maximumPushesPerSender, in: 1...1_000_000)
    worker.broadcasts.maximumBulkPushesPerSender = try reader.int(
      "worker.maximumBulkPushesPerSender", default: worker.broadcasts.maximumBulkPushesPerSender, in: 1...1_000_000)
    worker.broadcasts.pageDevices = try reader.int(
      "worker.pageDevices", default: worker.broadcasts.pageDevices, in: 1...25_000)
    worker.broadcasts.broadcastFailureShare = try reader.share(
      "worker.broadcastFailureShare", default: worker.broadcasts.broadcastFailureShare)
    worker.times.defaultTimeToLive = try reader.seconds("worker.defaultTimeToLive", default: 86_400, in: 1...2_419_200)
    worker.times.drainDeadline = try reader.seconds("worker.drainSeconds", default: 20, in: 0.1...3600)
    worker.times.longestRest = try reader.seconds("worker.longestRest", default: 10, in: 0.1...3600)
    worker.retry.maximumAttempts = try reader.int(
      "worker.maximumAttempts", default: worker.retry.maximumAttempts, in: 1...100)
    configuration = worker
  }
}
