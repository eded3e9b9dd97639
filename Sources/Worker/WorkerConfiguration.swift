package import FanfareCore
package import RDKafka

/// How much a worker may hold, how long things may take, and how it deals with refusals. Every limit is per process.
package struct WorkerConfiguration: Sendable {
  /// The consumer group that all workers of a deployment share.
  package var consumerGroup = "fanfare-workers"

  // What may be held.

  /// The most records taken and not settled. While a service is silent, those that it has are not counted, up to as
  /// many again.
  package var maximumRecords = 5_000
  /// The most bytes of such records, which decoded and rendered take several times as many. No more is asked for than
  /// is likely to fit: where records are suddenly larger, it is exceeded by what is on its way before the rest is taken
  /// back.
  package var maximumBytes = 4 << 20
  /// The most devices of sends being worked on. Checked before more are looked up, so that it can be exceeded by one
  /// batch of look-ups, and by one record that was put off. Pages of paused broadcasts keep a quarter of it at most,
  /// where there are retry topics.
  package var maximumDevices = 200_000
  /// The most pushes handed to senders and not yet answered, all senders together.
  package var maximumPushes = 10_000
  /// The same for one sender: no platform that does not answer can take every place. At least as many as its
  /// connections have streams.
  package var maximumPushesPerSender = 5_000
  /// The farthest that work in one partition may run ahead of its first unsettled record; reached, no further records
  /// are taken. Of segments of broadcasts, of which paused ones stay unsettled, only no further segments.
  package var maximumSpan = 100_000
  /// The most settled sends remembered, to recognise duplicates; fewer than 524,288, by which time the place of one may
  /// look as if it were its own again.
  package var rememberedSends = 65_536
  /// The most pushes of one sender that are remembered as kept from their devices by an outage; of more the order is
  /// not kept.
  package var maximumOrdered = 100_000
  /// The most audiences in one request to the registry, each of which counts once, however large it is.
  package var lookUpBatch = 512
  /// The most devices in one status record; the results of a larger send are spread over several.
  package var devicesPerStatus = 2_000
  /// The most devices that a send to a tag, an expression or everyone may have to be dispatched in one piece; a larger
  /// one is divided into pages.
  package var undividedDevices = 2_000
  /// How many devices a page of a broadcast and the head start of the next one are to have: what a crash repeats, or a
  /// little more where the slice of a page happens to hold more. Each page costs a status record and a row in the
  /// registry. No more than what fits in one retry record, should none of them be reached: of the 8 MiB that a record
  /// may have each takes some 250 bytes.
  package var pageDevices = 5_000
  /// How many of them the next page may push to while the last pushes of the one before it are answered and noted.
  var headStart: Int { pageDevices / 5 }
  /// The most devices that are looked at in one question about a page.
  package var lookUpPage = 2_500
  /// Into how many segments a broadcast is divided at most: what workers share among themselves.
  package var segments = 64
  /// The most pushes of broadcasts handed to one sender and not yet answered: the rest of its room is for single sends,
  /// and while these come it may be fewer (see `BroadcastWindow`).
  package var maximumBulkPushesPerSender = 1_000
  /// The most segments of broadcasts taken and not finished, beside the records of single sends: paused ones stay for
  /// as long as they are paused.
  package var maximumSegments = 20_000
  /// The most bytes of such segments.
  package var maximumSegmentBytes = 64 << 20
  /// The share of a page's devices whose failure pauses its broadcast, 0…1; deaths and expiry do not count.
  package var broadcastFailureShare = 0.5
  /// Pages with fewer devices are too few to judge by.
  package var broadcastFailureSample = 20
  /// The most bytes that are kept with a partition's position about what is settled above it. Brokers take 4,096 unless
  /// told otherwise; what finds no room is done again after a crash. 0: nothing is kept.
  package var commitMetadataBytes = 3_500

  /// What a push service takes of a hub in any 60 seconds, from all workers together; where there is nothing here,
  /// there is no such limit.
  package var pushesPerMinute: [HubName: [Platform: Int]] = [:]

  // How long things may take.

  /// The life of a send that names none.
  package var defaultTimeToLive = Duration.seconds(24 * 60 * 60)
  /// A push is handed to its sender at most this long after the look-up was asked that found its device among those of
  /// the user it is for; where the registry takes longer to answer, in the moment it does.
  package var ownershipWindow = Duration.milliseconds(250)
  /// From the wish to shut down until what is still in flight is given up.
  package var drainDeadline = Duration.seconds(20)
  /// From the wish of the group to have partitions back until what is still in flight is given up. Meanwhile the
  /// consumer reads nothing.
  package var revokeDeadline = Duration.milliseconds(3_000)
  /// From then on until partitions are given back whether or not their last positions are committed.
  package var lastCommitDeadline = Duration.milliseconds(1_500)
  /// How long partitions wait for the group's word on what their last owner has settled. Without it all of it is done.
  package var resumeDeadline = Duration.milliseconds(5_000)
  /// What has settled is committed at most this often; 0: as soon as the commit before has ended.
  package var commitInterval = Duration.milliseconds(250)
  /// How often it is asked what is wanted of the broadcasts that are under way.
  package var steeringInterval = Duration.milliseconds(500)
  /// How often a sender that was stopped by a configuration error is tried.
  package var probeInterval = Duration.seconds(15)
  /// How often a push service that was unavailable is tried.
  package var outageProbeInterval = Duration.seconds(5)
  /// The longest wait in a worker's memory, where there are retry topics: what must wait longer is put off.
  package var longestRest = Duration.seconds(10)
  /// How exact delays are.
  package var tickInterval = Duration.milliseconds(50)

  // How refusals are dealt with.

  /// When a push service that does not answer is left alone.
  package var circuit = CircuitPolicy()

  /// What outcomes mean.
  package var retry = RetryPolicy()
  /// When dead devices stop being believed.
  package var unregisterPolicy = UnregisterPolicy()

  package init() {}

  /// A value that makes no sense, named as the property is.
  package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
    package let property: String
    package let expected: String

    package var description: String { "\(property): expected \(expected)" }
  }

  /// Throws `Problem` for the first value that makes no sense.
  package func check() throws(Problem) {
    let counts: [(String, Int, ClosedRange<Int>)] = [
      ("maximumRecords", maximumRecords, 1...Ticket.maximumSlots / 4), ("maximumBytes", maximumBytes, 1...Int.max),
      ("maximumDevices", maximumDevices, 1...Int.max),
      ("maximumPushes", maximumPushes, 1...Int.max), ("maximumPushesPerSender", maximumPushesPerSender, 1...Int.max),
      ("maximumSpan", maximumSpan, 1...Int.max), ("rememberedSends", rememberedSends, 0...(Ticket.generations - 1)),
      ("lookUpBatch", lookUpBatch, 1...Int.max), ("devicesPerStatus", devicesPerStatus, 1...1_000_000),
      ("maximumSegments", maximumSegments, 1...Ticket.maximumSlots / 2),
      ("maximumSegmentBytes", maximumSegmentBytes, 1...Int.max), ("undividedDevices", undividedDevices, 1...100_000),
      ("pageDevices", pageDevices, 1...25_000),
      ("lookUpPage", lookUpPage, 1...100_000), ("segments", segments, 1...10_000),
      ("maximumBulkPushesPerSender", maximumBulkPushesPerSender, 1...Int.max),
      ("broadcastFailureSample", broadcastFailureSample, 1...Int.max),
      ("commitMetadataBytes", commitMetadataBytes, 0...16_384),
    ]
    for (property, value, range) in counts where !range.contains(value) {
      throw Problem(property: property, expected: "\(range.lowerBound) to \(range.upperBound)")
    }
    let times: [(String, Duration)] = [
      ("defaultTimeToLive", defaultTimeToLive), ("ownershipWindow", ownershipWindow), ("drainDeadline", drainDeadline),
      ("revokeDeadline", revokeDeadline), ("lastCommitDeadline", lastCommitDeadline),
      ("resumeDeadline", resumeDeadline),
      ("probeInterval", probeInterval), ("tickInterval", tickInterval),
      ("outageProbeInterval", outageProbeInterval), ("steeringInterval", steeringInterval),
      ("longestRest", longestRest),
    ]
    for (property, value) in times where value < .milliseconds(1) {
      throw Problem(property: property, expected: "at least 1 ms")
    }
  }

  /// The consumer a worker wants: its group, its topics, no commits but the worker's own, and a deadline for rebalances
  /// that leaves room for the worker's.
  package func consumer(client: KafkaClientConfiguration, topics: Topics) -> ConsumerConfiguration {
    var configuration = ConsumerConfiguration(
      client: client, groupID: consumerGroup, topics: [topics.sends, topics.segments])
    // The consumer's deadline is for a worker that has died, not for one that is slow: the worker's own begins when it
    // hears of the rebalance.
    configuration.rebalanceDeadline = max(revokeDeadline + lastCommitDeadline, resumeDeadline) + .seconds(2)
    configuration.autoCommitInterval = nil
    configuration.readsHeaders = false
    configuration.pausableTopics = [topics.segments]
    // A worker's memory is bounded by what it holds; what is fetched in advance, and what one fetch can become when it
    // is decompressed, comes on top.
    (configuration.prefetchRecords, configuration.prefetchBytes) = (5_000, 2 << 20)
    configuration.fetchBytes = 256 << 10
    return configuration
  }
}
