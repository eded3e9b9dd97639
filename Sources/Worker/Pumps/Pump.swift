package import FanfareCore
package import Logging
package import RDKafka
import ServiceLifecycle

/// The source of a pump's records.
/// It commits stored positions itself: soon, and at the latest when their partitions are given back. `Consumer` is the
/// implementation.
package protocol StoringSource: RecordSource {
  /// Stores positions. Throws `.notAssigned` for a partition that has another owner.
  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError)
}

extension Consumer: StoringSource {}

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

  package init(_ order: Order) { self.order = order }
}

/// Copies the records of one topic to the sends topic.
///
/// A record's offset is stored when its copy and those of all records before it are acknowledged, so no record is lost.
/// Copies that a crash repeats are recognised by the record's identity, those of a retry topic not across a rebalance.
/// No record stops the topic: one that Kafka will never take becomes a dead letter, and a dead letter that is too large
/// becomes one without key and value.
package final class Pump: Service {
  private let topic: any PumpedTopic
  private let source: any StoringSource
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
    topic.configure(&configuration)
    return configuration
  }

  /// The same with this consumer, which it owns.
  package init(
    _ topic: any PumpedTopic, consumer: any StoringSource, producer: any RecordSink,
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
    // Bounded by the credit for records, and by one acknowledgement for each.
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
    var isLeaving = false
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
      let effects = state.advance(step, at: now)
      release(effects.due, at: now.wall)
      topic.count(released: effects.due, settled: effects.settled, waiting: state.held)
      store(effects.positions)
      for rebalance in effects.completed { rebalance.complete() }
      if effects.credit != 0 { source.grant(records: effects.credit) }
      if effects.hasDrained, !isLeaving {
        isLeaving = true
        group.addTask { [source] in await source.close() }
      }
    }
    return failure
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

  private func store(_ offsets: [PartitionOffset]) {
    guard !offsets.isEmpty else { return }
    do {
      try source.store(offsets)
    } catch {
      // The new owner of the partition copies again; the copies are recognised by their identity.
      logger.warning("Positions of a pump could not be stored", metadata: [LogKeys.error: "\(error)"])
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
