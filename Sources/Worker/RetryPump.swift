package import FanfareCore
package import Logging
import Metrics
package import RDKafka
import ServiceLifecycle

/// The source of the pump's records.
/// It commits stored positions itself: soon, and at the latest when their partitions are given back. `Consumer` is the
/// implementation.
package protocol StoringSource: RecordSource {
  /// Stores positions. Throws `.notAssigned` for a partition that has another owner.
  func store(_ offsets: [PartitionOffset]) throws(RDKafkaError)
}

extension Consumer: StoringSource {}

/// Brings deferred records back: reads one retry topic, holds each record until it is due, and
/// copies it to the sends topic.
///
/// A record's offset is stored when its copy and those of all records before it are acknowledged, so no record is lost.
/// Copies that a crash repeats are recognised by the record's identity, except across a rebalance.
package final class RetryPump: Service {
  /// The pump's limits of memory and time.
  package struct Limits: Sendable {
    /// The most records held.
    /// If more wait, a due record may lie in the log behind others and return late.
    package var records = 20_000
    /// The most bytes of records held; one fetch may exceed it.
    package var bytes = 32 << 20
    /// The accuracy of release times.
    /// Long delays are accurate to a twentieth of the delay, at most five seconds.
    package var tickInterval = Duration.milliseconds(100)
    /// From a shutdown or a revocation until unacknowledged copies are given up.
    package var drainDeadline = Duration.milliseconds(1_200)

    package init() {}
  }

  private let source: any StoringSource
  private let sink: any RecordSink
  private let topics: Topics
  private let delay: Duration
  private let limits: Limits
  private let clock: any WallClock
  private let delays: any DelayClock
  private let logger: Logger
  private let steps: AsyncStream<PumpStep>
  private let post: AsyncStream<PumpStep>.Continuation

  /// Makes a pump; nothing happens before `run()`.
  /// It owns the consumer; the producer must outlive it.
  package init(
    consumer: any StoringSource, producer: any RecordSink, topics: Topics, delay: Duration, limits: Limits = Limits(),
    clock: any WallClock = SystemWallClock(), delays: any DelayClock = SystemDelayClock(), logger: Logger
  ) {
    source = consumer
    sink = producer
    self.topics = topics
    self.delay = delay
    self.limits = limits
    self.clock = clock
    self.delays = delays
    self.logger = logger
    // Bounded by the credit for records, and by one acknowledgement for each.
    (steps, post) = AsyncStream.makeStream()
  }

  /// How late a due record may be released.
  /// Records due within this time are released together, so that Kafka gets fewer and larger batches.
  static func lateness(of delay: Duration) -> Duration { max(.milliseconds(1), min(delay / 20, .seconds(5))) }

  /// The group of all pumps of a retry topic.
  /// Each topic has its own, so that long delays do not hold up short ones.
  package static func group(_ retry: Topics.Retry) -> String { retry.name }

  /// The configuration of a pump's consumer.
  package static func consumer(client: KafkaClientConfiguration, retry: Topics.Retry) -> ConsumerConfiguration {
    var configuration = ConsumerConfiguration(client: client, groupID: group(retry), topics: [retry.name])
    configuration.prefetchRecords = 1_000
    configuration.prefetchBytes = 8 << 20
    // Deferred records wait for at least a second; the embedded cluster answers every idle fetch after this time.
    configuration.fetchWait = .milliseconds(250)
    return configuration
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
    var state = PumpState(delay: delay, limits: limits)
    let metrics = PumpMetrics(delay: delay)
    var isLeaving = false
    var failure: RDKafkaError?
    var isRefused = false
    for await step in steps {
      let now = Moment(wall: clock.now(), uptime: delays.uptime())
      if case .ended = step { break }
      if case .event(.failed(let error)) = step {
        if error.isFatal { failure = error }
        logger.log(
          level: error.isFatal ? .error : .warning, "Consumer of a retry topic reports an error",
          metadata: [LogKeys.error: "\(error)"])
      }
      if case .acknowledged(let answers) = step {
        let refusal = answers.lazy.compactMap(\.error).first { !$0.code.condemnsRecord }
        if let refusal, !isRefused {
          logger.error("Deferred records could not be produced", metadata: [LogKeys.error: "\(refusal)"])
        }
        isRefused = refusal != nil
      }
      let effects = state.advance(step, at: now)
      release(effects.due, at: now.wall)
      metrics.show(effects.due, waiting: state.held)
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

  private func release(_ due: [PumpState.Held], at now: UnixTime) {
    guard !due.isEmpty else { return }
    var records: [ProducerRecord] = []
    // Where the records of each one end.
    var ends: [Int] = []
    for held in due {
      if let condemnation = held.condemnation {
        records += deadLetter(held, because: condemnation, at: now)
      } else {
        records.append(ProducerRecord(topic: topics.sends, key: held.key, event: held.value))
      }
      ends.append(records.count)
    }
    let post = post
    sink.submit(records) { [ends] results in
      var start = 0
      let answers = zip(due, ends).map { held, end -> (held: PumpState.Held, error: RDKafkaError?) in
        defer { start = end }
        for result in results[start..<end] {
          if case .failure(let error) = result { return (held, error) }
        }
        return (held, nil)
      }
      post.yield(.acknowledged(answers))
    }
  }

  /// The dead letter of a record that the sends topic will never take, and the status of its part of the send.
  private func deadLetter(_ held: PumpState.Held, because error: RDKafkaError, at now: UnixTime) -> [ProducerRecord] {
    let detail = "the sends topic refuses it for good: \(error.code)"
    let letter = DeadLetter(
      reason: .tooLarge,
      detail: held.isShortened ? "\(detail) (value of \(held.value.count) bytes left out)" : detail,
      origin: held.place, at: now, key: held.isShortened ? nil : held.key, value: held.isShortened ? [] : held.value,
      valueSize: held.value.count)
    var records = [ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded())]
    do {
      let retry = try RetryRecord.decode(held.value[...], recordTime: now, now: now)
      // Only counts: the list of its devices is what made it large.
      let status = StatusRecord(
        of: retry.send, as: .settled, retry.statusPart, devices: retry.devices.map(\.whenTooLarge), at: now,
        times: retry.times)
      records.append(
        ProducerRecord(
          topic: topics.status, key: Array("\(retry.send.id)".utf8), event: (status.shortened ?? status).encoded()))
    } catch {
      // A record that cannot be read belongs to no known send.
    }
    if !held.isShortened {
      logger.error(
        "Record dead-lettered",
        metadata: [
          LogKeys.topic: "\(held.place.topic)", LogKeys.partition: "\(held.place.partition)",
          LogKeys.offset: "\(held.place.offset)", LogKeys.reason: "\(letter.reason.rawValue)",
          LogKeys.detail: "\(detail)",
        ])
    }
    return records
  }

  private func store(_ offsets: [PartitionOffset]) {
    guard !offsets.isEmpty else { return }
    do {
      try source.store(offsets)
    } catch {
      // The new owner of the partition copies again; the copies are recognised by their identity.
      logger.warning("Positions in a retry topic could not be stored", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private func tick() async {
    while true {
      do {
        try await delays.sleep(for: limits.tickInterval)
      } catch {
        // Cancelled: the pump ends.
        return
      }
      post.yield(.tick)
    }
  }
}

private struct PumpMetrics {
  private let released: Counter
  private let waiting: Gauge
  private let deadLetters = Counter(
    label: "fanfare_dead_letters_total", dimensions: [("reason", DeadLetter.Reason.tooLarge.rawValue)])

  init(delay: Duration) {
    let dimensions = [("delay_seconds", "\(delay.components.seconds)")]
    released = Counter(label: "fanfare_retries_released_total", dimensions: dimensions)
    waiting = Gauge(label: "fanfare_retries_waiting", dimensions: dimensions)
  }

  func show(_ due: [PumpState.Held], waiting held: Int) {
    let condemned = due.count { $0.condemnation != nil && !$0.isShortened }
    if condemned > 0 { deadLetters.increment(by: condemned) }
    let count = due.count { $0.condemnation == nil }
    if count > 0 { released.increment(by: count) }
    waiting.record(held)
  }
}
