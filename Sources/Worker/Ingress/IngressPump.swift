package import FanfareCore
package import Logging
import Metrics
package import RDKafka
import ServiceLifecycle

/// Brings the sends of a hub's ingress topic to the sends topic, and enforces the hub.
///
/// A record that names no hub gets the topic's; one that names another hub is dead-lettered, like one that is no send.
///
/// - Keys and order are kept. A batch is acknowledged before the next one begins. After a failure the first record that
///   failed and all behind it are produced again. The producer's queue, when full, refuses all records behind the first
///   that it refuses (`ProducerHandle`), so none overtakes it.
/// - An offset is stored when Kafka has the copy, so no record is lost. A worker recognises repeated copies by their ids.
/// - No record stops the topic: a copy that Kafka will never take becomes a dead letter, and a dead letter that is too
///   large becomes one without key and value.
package final class IngressPump: Service {
  /// The most records fetched and not acknowledged.
  private static let maximumRecords = 256
  /// The most bytes of them, by the typical size: if records suddenly become larger, those under way exceed it.
  static let maximumBytes = 4 << 20
  /// The wait after records that could not be produced.
  private static let backoff = Duration.seconds(1)

  private let source: any StoringSource
  private let sink: any RecordSink
  private let topics: Topics
  private let hub: HubName
  private let clock: any WallClock
  private let delays: any DelayClock
  private let logger: Logger

  /// Makes a pump; nothing happens before `run()`. It owns the consumer; the producer must outlive it.
  package init(
    consumer: any StoringSource, producer: any RecordSink, topics: Topics, hub: HubName,
    clock: any WallClock = SystemWallClock(), delays: any DelayClock = SystemDelayClock(), logger: Logger
  ) {
    (source, sink, self.topics, self.hub) = (consumer, producer, topics, hub)
    (self.clock, self.delays, self.logger) = (clock, delays, logger)
  }

  /// The group of all pumps of a topic, by the topic's name.
  package static func group(_ topic: String) -> String { topic }

  /// The configuration of a pump's consumer.
  package static func consumer(client: KafkaClientConfiguration, topic: String) -> ConsumerConfiguration {
    var configuration = ConsumerConfiguration(client: client, groupID: group(topic), topics: [topic])
    configuration.prefetchBytes = 2 << 20
    return configuration
  }

  /// The lifetime. On graceful shutdown it finishes its batch, leaves the group, and returns. Throws when the consumer
  /// fails for good.
  package func run() async throws {
    let source = source
    let failure = await withDiscardingTaskGroup { group in
      group.addTask { await source.run() }
      group.addTask {
        do { try await gracefulShutdown() } catch { return }
        await source.close()
      }
      let failure = await pump()
      group.cancelAll()
      return failure
    }
    if let failure { throw failure }
  }

  private func pump() async -> RDKafkaError? {
    let metrics = IngressMetrics(hub: hub)
    var credit = CreditWindow()
    func grant(beside records: Int = 0, bytes: Int = 0) {
      let change = credit.grant(records: Self.maximumRecords - records, bytes: Self.maximumBytes - bytes)
      if change != 0 { source.grant(records: change) }
    }
    grant()
    // After an interrupted batch no later offset may be stored: the next owner of the partitions moves the rest.
    var isInterrupted = false
    for await event in source.events {
      switch event {
      case .records(let records):
        let bytes = records.reduce(0) { $0 + $1.value.count }
        credit.receive(records: records.count, bytes: bytes)
        grant(beside: records.count, bytes: bytes)
        guard !isInterrupted, await move(records, metrics) else {
          isInterrupted = true
          continue
        }
        grant()
      // Everything before has been produced.
      case .assigned(_, let rebalance), .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
      case .failed(let error):
        logger.log(
          level: error.isFatal ? .error : .warning, "Consumer of an ingress topic reports an error",
          metadata: [LogKeys.error: "\(error)"])
        if error.isFatal { return error }
      }
    }
    return nil
  }

  /// Produces the records in order, and stores their offsets. Returns false, and stores none, if the role stops before.
  private func move(_ records: [ConsumedRecord], _ metrics: IngressMetrics) async -> Bool {
    var moved = records.map { Self.checked($0, hub: hub, topics: topics, at: clock.now()) }
    var copies = moved.map(\.copy)
    var isRefused = false
    while !copies.isEmpty {
      let results = await withCheckedContinuation { continuation in
        sink.submit(copies) { continuation.resume(returning: $0) }
      }
      guard let failed = results.firstIndex(where: { if case .failure = $0 { true } else { false } }) else { break }
      copies.removeFirst(failed)
      if case .failure(let error) = results[failed] {
        if error.code.condemnsRecord {
          let index = records.count - copies.count
          moved[index] = condemned(records[index], isLetter: moved[index].refusal != nil, because: error)
          copies[0] = moved[index].copy
          continue
        }
        if !isRefused {
          logger.error("Sends of an ingress topic could not be produced", metadata: [LogKeys.error: "\(error)"])
          isRefused = true
        }
      }
      guard !Task.isShuttingDownGracefully else { return false }
      do { try await delays.sleep(for: Self.backoff) } catch { return false }
    }
    metrics.count(moved.map(\.refusal))
    var ends: [TopicPartition: Int64] = [:]
    for record in records { ends[record.topicPartition] = record.offset + 1 }
    do {
      try source.store(ends.map { PartitionOffset(partition: $0.key, offset: $0.value) })
    } catch {
      // The new owner of the partition copies again; the copies are recognised by their ids.
      logger.warning("Positions in an ingress topic could not be stored", metadata: [LogKeys.error: "\(error)"])
    }
    return true
  }

  /// The dead letter of a record whose copy Kafka will never take; without key and value if the copy was one already.
  private func condemned(
    _ record: ConsumedRecord, isLetter: Bool, because error: RDKafkaError
  ) -> (copy: ProducerRecord, refusal: DeadLetter.Reason?) {
    let letter = DeadLetter(
      reason: .tooLarge, detail: "the sends topic refuses it for good: \(error.code)",
      origin: DeadLetter.Origin(topic: record.topic, partition: record.partition, offset: record.offset),
      at: clock.now(), key: isLetter ? nil : record.key.map(Array.init), value: isLetter ? [] : Array(record.value),
      valueSize: record.value.count)
    return (ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded()), .tooLarge)
  }

  /// The record for the sends topic, or for the dead-letter topic with the reason.
  static func checked(
    _ record: ConsumedRecord, hub: HubName, topics: Topics, at now: UnixTime
  ) -> (copy: ProducerRecord, refusal: DeadLetter.Reason?) {
    let key = record.key.map(Array.init)
    let written = record.timestamp >= 0 ? UnixTime(milliseconds: record.timestamp) : now
    do throws(RecordError) {
      let (send, namesHub, namesTime) = try SendRequest.decode(record.value, recordTime: written, in: hub)
      guard send.hub == hub else { throw RecordError(.foreignHub, "hub: names another hub than the topic's") }
      // Copied unchanged if it names all that a worker needs. Without a hub a worker takes `default`. Without a time it
      // would take the timestamp of the copy, and the time to live would begin again.
      let value = namesTime && (namesHub || hub == .default) ? Array(record.value) : send.encoded()
      guard value.count <= SendRequest.maximumRecordSize || send.replay != nil else {
        throw RecordError(
          .tooLarge, "hub and time make the record larger than \(SendRequest.maximumRecordSize) bytes")
      }
      return (ProducerRecord(topic: topics.sends, key: key, event: value), nil)
    } catch {
      let place = DeadLetter.Origin(topic: record.topic, partition: record.partition, offset: record.offset)
      let letter = DeadLetter(
        reason: error.reason, detail: error.detail, origin: place, at: now, key: key, value: Array(record.value))
      return (ProducerRecord(topic: topics.deadLetter, key: key, event: letter.encoded()), error.reason)
    }
  }
}

/// Counts what passes an ingress topic.
private struct IngressMetrics {
  private let moved: Counter
  private let hub: HubName

  init(hub: HubName) {
    self.hub = hub
    moved = Counter(label: "fanfare_ingress_total", dimensions: [("hub", "\(hub)")])
  }

  func count(_ refusals: [DeadLetter.Reason?]) {
    var taken = 0
    for refusal in refusals {
      if let refusal {
        Counter(label: "fanfare_dead_letters_total", dimensions: [("reason", refusal.rawValue)]).increment()
      } else {
        taken += 1
      }
    }
    moved.increment(by: taken)
  }
}
