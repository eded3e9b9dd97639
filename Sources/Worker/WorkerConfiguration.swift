package import FanfareCore
package import RDKafka

/// The worker's limits, times and policies. Every limit is per process. Those that an operator can set have their ranges
/// in the declarations of the settings.
package struct WorkerConfiguration: Sendable {
  /// The consumer group that all workers of a deployment share.
  package var consumerGroup = "fanfare-workers"
  package var limits = Limits()
  package var broadcasts = Broadcasts()
  package var times = Times()
  /// The most devices in one status record; the results of a larger send are spread over several.
  package var devicesPerStatus = 2_000
  /// The quota of each platform in any 60 seconds, of all workers together; no entry: no quota.
  package var pushesPerMinute: [HubName: [Platform: Int]] = [:]
  /// When the circuit of a push service opens.
  package var circuit = CircuitPolicy()
  /// The meaning of push outcomes.
  package var retry = RetryPolicy()
  /// When the worker stops believing that devices are dead.
  package var unregisterPolicy = UnregisterPolicy()

  /// The most that a worker may hold.
  package struct Limits: Sendable {
    /// The most records taken and not settled.
    /// Those in flight at an unresponsive service are exempt, up to the same number again.
    package var maximumRecords = 5_000
    /// The most bytes of such records; decoded and rendered they take several times as much.
    /// Credit is granted by the typical size: if records suddenly become larger, those under way exceed the limit
    /// before credit is taken back.
    package var maximumBytes = 4 << 20
    /// The most devices of sends being dispatched.
    /// Checked before a look-up, so one batch of look-ups may exceed it, and so may deferred records that come back:
    /// `maximumBytes` bounds them. With retry topics, pages of paused broadcasts keep a quarter of it at most.
    package var maximumDevices = 200_000
    /// The most pushes in flight, on all platforms together.
    package var maximumPushes = 10_000
    /// The most pushes in flight on one platform, so that one without answers cannot take every
    /// place. At least as many as its connections have streams.
    package var maximumPushesPerSender = 5_000
    /// The farthest that work in one partition may run ahead of its first unsettled record; then no
    /// further records are taken. In the segments topic, where paused broadcasts stay unsettled, it stops only further
    /// segments.
    package var maximumSpan = 100_000
    /// The most segments of broadcasts taken and not finished, apart from records of single sends.
    /// Paused segments stay while they are paused.
    package var maximumSegments = 20_000
    /// The most bytes of such segments.
    package var maximumSegmentBytes = 64 << 20
    /// The most pushes of one platform that are remembered as delayed by an outage; the order of
    /// more is not kept.
    package var maximumOrdered = 100_000
    /// The most settled sends remembered to recognise duplicates.
    /// Less than 524,288, after which tickets repeat.
    package var rememberedSends = 65_536
    /// The most audiences in one request to the registry.
    package var lookUpBatch = 512
    /// The most devices of a user that are looked up at once. A user with more is sent to in pages, like a tag.
    package var lookUpDevices = 1_000
    /// The most bytes of metadata that are committed with a partition's position: the runs settled
    /// above it. Brokers accept 4,096 by default; settled records without room are repeated after a crash. 0: none.
    package var commitMetadataBytes = 3_500
    /// The most records that settle before a commit begins, however little time has passed.
    /// A crash repeats those that no commit covers.
    package var commitRecords = 1_000

    package init() {}
  }

  /// How broadcasts are divided and pushed.
  package struct Broadcasts: Sendable {
    /// The most devices of a send to a tag, an expression or everyone that is dispatched in one
    /// piece; a larger one is divided into pages.
    package var undividedDevices = 2_000
    /// How many devices a page and the next page's head start have together, or slightly more if a
    /// page's slice happens to hold more. A crash repeats them. Each page costs a status record and a row in the
    /// registry. At most as many as fit into one retry record of 8 MiB, at some 250 bytes each.
    package var pageDevices = 5_000
    /// How many devices a page of a slow broadcast has at least, unless `pageDevices` is smaller.
    static let leastPageDevices = 1_000
    /// How many devices the next page may push to while the page before is being finished.
    package var headStart: Int { pageDevices / 5 }
    /// The most devices looked at in one question about a page.
    package var lookUpPage = 2_500
    /// The segments of a broadcast: the workers share them.
    package var segments = 64
    /// The most segments of a broadcast so large that its segments would otherwise have more than 16 pages. Each segment
    /// is walked page by page, so the devices in a second grow with their number.
    package var mostSegments = 1_024
    /// The most pushes of broadcasts in flight on one platform: the rest of its room is for single
    /// sends. While single sends arrive, it may be fewer (see `BroadcastWindow`).
    package var maximumBroadcastPushesPerSender = 1_000
    /// The share of a page's devices whose failure pauses its broadcast, 0…1; dead devices and
    /// expiry do not count.
    package var broadcastFailureShare = 0.5
    /// Pages with fewer devices are too few to judge by.
    package var broadcastFailureSample = 20

    /// How many segments a broadcast with that many pages has.
    package func segments(pages: Int) -> Int { min(pages, max(segments, min(pages / 16, mostSegments))) }

    package init() {}
  }

  /// The worker's times and intervals.
  package struct Times: Sendable {
    /// The time to live of a send that names none.
    package var defaultTimeToLive = Duration.seconds(24 * 60 * 60)
    /// A push is handed over at most this long after the request that found its device among the
    /// user's; if the registry takes longer, as soon as it answers.
    package var ownershipWindow = Duration.milliseconds(250)
    /// From a shutdown until work in flight is given up.
    package var drainDeadline = Duration.seconds(20)
    /// From a revocation until work in flight is given up. Meanwhile the consumer reads no records.
    package var revokeDeadline = Duration.milliseconds(3_000)
    /// From then on until partitions are released, whether or not their last positions are
    /// committed.
    package var lastCommitDeadline = Duration.milliseconds(1_500)
    /// How long a worker that is told to end waits for Kafka: for the acknowledgement of status records without which
    /// nothing else settles, and for the last commit.
    package var lastCommitPatience = Duration.milliseconds(5_000)
    /// How long partitions wait for the group's answer about the offsets their last owner has
    /// settled. Without an answer settled records are repeated.
    package var resumeDeadline = Duration.milliseconds(5_000)
    /// The time between two commits, unless `commitRecords` settle earlier; 0: a commit begins as soon as the one
    /// before has ended.
    package var commitInterval = Duration.milliseconds(250)
    /// How long a status record or a deferred one waits for others to share its batch.
    /// A batch of three records costs as much per partition as one of twenty. But a send counts against the worker's
    /// memory limits until its status record is acknowledged. Measured with 4 to 40 ms and 16 partitions: values up to
    /// 12 ms were fastest.
    package var statusLinger = Duration.milliseconds(10)
    /// How often the worker asks for the controls of the broadcasts in work.
    package var controlInterval = Duration.milliseconds(500)
    /// How often a platform that refuses the configuration is probed.
    package var probeInterval = Duration.seconds(15)
    /// How often a platform that is unavailable is probed.
    package var outageProbeInterval = Duration.seconds(5)
    /// The longest wait in memory: a push that must wait longer is deferred to a retry topic.
    package var longestRest = Duration.seconds(10)
    /// The accuracy of delays.
    package var tickInterval = Duration.milliseconds(50)

    package init() {}
  }

  package init() {}

  /// The configuration of a worker's consumer: its group and topics, no automatic commits, and a
  /// rebalance deadline that leaves room for the worker's own.
  /// The group assigns the partitions of the sends topic alone, which balances both topics.
  package func consumer(client: KafkaClientConfiguration, topics: Topics) -> ConsumerConfiguration {
    var configuration = ConsumerConfiguration(
      client: client, groupID: consumerGroup, topics: [topics.sends])
    configuration.companionTopic = topics.segments
    // The consumer's deadline is for a worker that has died. The worker's own begins when it hears of the rebalance.
    configuration.rebalanceDeadline =
      max(times.revokeDeadline + times.lastCommitDeadline, times.resumeDeadline) + .seconds(2)
    configuration.autoCommitInterval = nil
    configuration.readsHeaders = false
    configuration.pausableTopics = [topics.segments]
    // Prefetched records, and the decompressed size of a fetch, add to the worker's limits.
    (configuration.prefetchRecords, configuration.prefetchBytes) = (5_000, 2 << 20)
    configuration.fetchBytes = 256 << 10
    return configuration
  }
}
