package import FanfareCore
package import Logging
package import RDKafka
import ServiceLifecycle

/// What a pump makes of the records of its topic: `RetryTopic` and `IngressTopic`.
package protocol PumpedTopic: Sendable {
  /// Also the name of the group of all its pumps: each topic has its own, so that none holds up another.
  var name: String { get }
  /// When records are copied, and how many are held.
  var policy: PumpPolicy { get }

  /// Adapts the configuration of the consumer.
  func configure(_ consumer: inout ConsumerConfiguration)

  /// The records to be produced in place of one: its copy, or a dead letter and what belongs to it. Called at each
  /// attempt; it may note in the record why it is not copied.
  func records(for held: inout HeldRecord, at now: UnixTime) -> [ProducerRecord]

  /// Counts the records that were released and that have settled in one step, and those that are held after it.
  func count(released: [HeldRecord], settled: [HeldRecord], waiting: Int)
}

/// When a pump copies records, and its limits of memory and time.
package struct PumpPolicy: Sendable {
  package enum Order: Sendable {
    /// Each when it is due, and at most after `delay`.
    case whenDue(delay: Duration)
    /// As they stand in the topic: a batch begins when Kafka has all of the one before. After a failure the first
    /// record that failed and all behind it are produced again. The producer's queue, when full, refuses all records
    /// behind the first that it refuses (`ProducerHandle`), so none overtakes it.
    case asWritten
  }

  package var order: Order
  /// The most records held.
  /// If more wait in a retry topic, a due record may lie in the log behind others and return late.
  package var records = 20_000
  /// The most bytes of records held; one fetch may exceed it.
  package var bytes = 32 << 20
  /// The accuracy of release times.
  /// Long delays are accurate to a twentieth of the delay, at most five seconds.
  package var tickInterval = Duration.milliseconds(100)
  /// From a shutdown or a revocation until unacknowledged copies are given up.
  package var drainDeadline = Duration.milliseconds(1_200)
  /// From then on until partitions are released, whether or not their last positions are committed.
  package var lastCommitDeadline = Duration.milliseconds(700)
  /// How long partitions wait for the group's answer about the records that their last owner has copied.
  package var resumeDeadline = Duration.milliseconds(5_000)
  /// The time between two commits: a crash repeats the copies that none covers.
  package var commitInterval = Duration.milliseconds(1_000)
  /// The most bytes of metadata that are committed with a position; see `WorkerConfiguration.Limits`.
  package var commitMetadataBytes = 3_500

  package init(_ order: Order) { self.order = order }
}

/// Copies the records of one topic to the sends topic.
///
/// A record's offset settles when its copy is acknowledged, and is committed as a worker's are (`PartitionTracker`). So
/// no record is lost, and the next owner of a partition copies those again that no commit covers. Workers recognise such
/// copies by the record's identity, those of a retry topic not across a rebalance.
/// No record stops the topic: one that Kafka will never take becomes a dead letter, and a dead letter that is too large
/// becomes one without key and value.
package final class Pump: Service {
  private let topic: any PumpedTopic
  private let source: any RecordSource
  private let sink: any RecordSink
  private let clock: any WallClock
  private let delays: any DelayClock
  private let logger: Logger
  private let steps: AsyncStream<PumpStep>
  private let post: AsyncStream<PumpStep>.Continuation

  /// Makes a pump with a consumer; nothing happens before `run()`. The producer must outlive it.
  package convenience init(
    _ topic: any PumpedTopic, client: KafkaClientConfiguration, producer: any RecordSink, clock: any WallClock,
    logger: Logger
  ) throws(RDKafkaError) {
    let consumer = try Consumer(configuration: Self.consumer(topic, client: client), logger: logger)
    self.init(topic, consumer: consumer, producer: producer, clock: clock, logger: logger)
  }

  /// The configuration of a pump's consumer.
  package static func consumer(_ topic: any PumpedTopic, client: KafkaClientConfiguration) -> ConsumerConfiguration {
    var configuration = ConsumerConfiguration(client: client, groupID: topic.name, topics: [topic.name])
    configuration.autoCommitInterval = nil
    // A deployment can have hundreds of pumps, and a client of its own for each would be too many. Commits that the
    // group refuses are repeated when it has formed again.
    configuration.keepsInterimOffsets = false
    let policy = topic.policy
    // The consumer's deadline is for a pump that has died.
    configuration.rebalanceDeadline =
      max(policy.drainDeadline + policy.lastCommitDeadline, policy.resumeDeadline) + .seconds(1)
    topic.configure(&configuration)
    return configuration
  }

  /// The same with this consumer, which it owns.
  package init(
    _ topic: any PumpedTopic, consumer: any RecordSource, producer: any RecordSink,
    clock: any WallClock = SystemWallClock(), delays: any DelayClock = SystemDelayClock(), logger: Logger
  ) {
    self.topic = topic
    source = consumer
    sink = producer
    self.clock = clock
    self.delays = delays
    var logger = logger
    logger[metadataKey: LogKeys.topic] = "\(topic.name)"
    self.logger = logger
    // Bounded by the credit for records, by one acknowledgement for each, and by one commit.
    (steps, post) = AsyncStream.makeStream()
  }

  /// The lifetime.
  /// On graceful shutdown it releases no more records, waits for outstanding copies until the deadline, leaves the
  /// group, and returns. Throws when the consumer fails for good.
  package func run() async throws {
    let (source, post) = (source, post)
    let failure = await withGracefulShutdownHandler {
      await withDiscardingTaskGroup { group in
        group.addTask { await source.run() }
        group.addTask {
          for await event in source.events { post.yield(.event(event)) }
          post.yield(.ended)
        }
        group.addTask { [self] in await tick() }
        let failure = await pump(in: &group)
        group.cancelAll()
        return failure
      }
    } onGracefulShutdown: {
      post.yield(.shutDown)
    }
    if let failure { throw failure }
  }

  private func pump(in group: inout DiscardingTaskGroup) async -> RDKafkaError? {
    var state = PumpState(topic.policy)
    var failure: RDKafkaError?
    var isRefused = false
    for await step in steps {
      let now = Moment(wall: clock.now(), uptime: delays.uptime())
      if case .ended = step { break }
      if case .event(.failed(let error)) = step {
        if error.isFatal { failure = error }
        logger.log(
          level: error.isFatal ? .error : .warning, "Consumer of a pump reports an error",
          metadata: [LogKeys.error: "\(error)"])
      }
      if case .acknowledged(let answers) = step {
        let refusal = answers.lazy.compactMap(\.error).first { !$0.code.condemnsRecord }
        if let refusal, !isRefused {
          logger.error("Records could not be moved to the sends topic", metadata: [LogKeys.error: "\(refusal)"])
        }
        isRefused = refusal != nil
      }
      if case .committed(let end) = step, let error = end.error, state.partitions.commits.failure == nil {
        // Normal while the group comes to a new assignment.
        logger.log(
          level: error.code == .rebalancing ? .info : .warning, "Positions of a pump could not be committed",
          metadata: [LogKeys.error: "\(error)"])
      }
      let effects = state.advance(step, at: now)
      release(effects.due, at: now.wall)
      topic.count(released: effects.due, settled: effects.settled, waiting: state.held)
      perform(effects.group, in: &group)
      if effects.credit != 0 { source.grant(records: effects.credit) }
    }
    return failure
  }

  private func perform(_ actions: GroupActions, in group: inout DiscardingTaskGroup) {
    let (source, post, logger) = (source, post, logger)
    if !actions.commit.isEmpty {
      group.addTask { post.yield(.committed(await source.end(ofCommit: actions.commit))) }
    }
    for question in actions.recoveries {
      group.addTask { post.yield(.recovered(await question.ask(source, logger: logger))) }
    }
    for rebalance in actions.completions { rebalance.complete() }
    if actions.isToLeave { group.addTask { await source.close() } }
  }

  private func release(_ due: [HeldRecord], at now: UnixTime) {
    guard !due.isEmpty else { return }
    var due = due
    var records: [ProducerRecord] = []
    // Where the records of each one end.
    var ends: [Int] = []
    for index in due.indices {
      records += topic.records(for: &due[index], at: now)
      ends.append(records.count)
    }
    sink.submit(records) { [due, ends, post] results in
      var start = 0
      let answers = zip(due, ends).map { held, end -> (held: HeldRecord, error: RDKafkaError?) in
        defer { start = end }
        for result in results[start..<end] {
          if case .failure(let error) = result { return (held, error) }
        }
        return (held, nil)
      }
      post.yield(.acknowledged(answers))
    }
  }

  private func tick() async {
    while true {
      do {
        try await delays.sleep(for: topic.policy.tickInterval)
      } catch {
        // Cancelled: the pump ends.
        return
      }
      post.yield(.tick)
    }
  }
}
