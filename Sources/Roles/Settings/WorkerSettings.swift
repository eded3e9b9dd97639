import Worker

/// What one worker process may hold, and how patient it is.
///
/// - `worker.group` (text): the consumer group that all workers share; default `<kafka.topicPrefix>.workers`.
/// - `worker.instance` (text): a name that survives restarts, for static membership: a restart then moves no partition.
/// - `worker.maximumRecords` (1…262144, default 5000): records taken and not settled.
/// - `worker.maximumBytes` (65536…1073741824, default 4194304): the bytes of such records, as they lie in Kafka;
///   decoded and rendered they take several times as many.
/// - `worker.maximumPushes` (1…1000000, default 10000): pushes handed to push services and not answered.
/// - `worker.maximumPushesPerSender` (1…1000000, default 5000): the same for one platform of one hub.
/// - `worker.maximumBulkPushesPerSender` (1…1000000, default 1000): those of them that may be broadcasts'; fewer
///   while single sends come, where they would only stand in line.
/// - `worker.pageDevices` (1…25000, default 5000): how many devices a page of a broadcast and the head start of the
///   next one are to have: what a crash repeats at most.
/// - `worker.broadcastFailureShare` (0…1, default 0.5): the share of a page whose failure pauses its broadcast.
/// - `worker.defaultTimeToLive` (seconds, default 86400): the life of a send that names none.
/// - `worker.drainSeconds` (seconds, default 20): from SIGTERM until what is in flight is given up.
/// - `worker.longestRest` (seconds, default 10): what must wait longer goes through a retry topic instead of waiting in
///   memory.
/// - `worker.maximumAttempts` (1…100, default 8): how often one push is handed over before it is given up.
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
