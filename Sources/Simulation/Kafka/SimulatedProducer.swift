import DequeModule
import FanfareCore
import RDKafka
import Worker

/// The model of an idempotent producer of one process.
///
/// One batch of a partition is under way at a time, and holds the records that were submitted since the batch before.
/// Without an answer the batch is sent again, and the leader recognises it. A record fails when its time is up; if it
/// was sent before, its fate is in doubt.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedProducer: RecordSink, @unchecked Sendable {
  /// A record on its way.
  private struct Waiting {
    let record: SimulatedCluster.Stored
    let submission: Submission
    /// Its place in the submission.
    let place: Int
    let since: World.Time
  }

  /// A submission whose answers are collected.
  private final class Submission {
    var results: [Result<RecordPosition, RDKafkaError>]
    var open: Int
    let completion: @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void

    init(_ count: Int, _ completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void) {
      let pending = RDKafkaError(code: .notPersisted, message: "not answered")
      results = Array(repeating: .failure(pending), count: count)
      open = count
      self.completion = completion
    }
  }

  /// The records of a partition.
  private struct Lane {
    var waiting: Deque<Waiting> = []
    /// The batch under way, and its number.
    var batch: (number: UInt64, records: [Waiting])?
  }

  /// How long records are tried before they fail.
  private static let deliveryTimeout: World.Time = .seconds(20)
  private static let longestBatch = 500
  /// The share of repeated batches at which the client gives up its handle, with everything under way in doubt, as
  /// librdkafka before 2.3 does.
  private static let fatalShare = 0.1

  private let cluster: SimulatedCluster
  private let process: SimulatedProcess
  private var lanes: [TopicPartition: Lane] = [:]

  init(of process: SimulatedProcess, to cluster: SimulatedCluster) {
    self.cluster = cluster
    self.process = process
  }

  private var world: World { cluster.world }

  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    // A dead process is not answered.
    guard !process.isDead else { return }
    let submission = Submission(records.count, completion)
    if records.isEmpty { process.after(0) { completion([]) } }
    let timestamp = process.now().milliseconds
    var touched: [TopicPartition] = []
    for (place, record) in records.enumerated() {
      guard let partition = cluster.partition(for: record) else {
        settle([(submission, place)], .failure(RDKafkaError(code: .unknownTopic, message: record.topic)))
        continue
      }
      let stored = SimulatedCluster.Stored(
        key: record.key, value: record.value, timestamp: timestamp, writer: process.name)
      lanes[partition, default: Lane()].waiting.append(
        Waiting(record: stored, submission: submission, place: place, since: world.now))
      if touched.last != partition { touched.append(partition) }
    }
    for partition in touched { sendNext(to: partition) }
  }

  /// Begins the next batch of a partition, unless one is under way.
  private func sendNext(to partition: TopicPartition) {
    guard var lane = lanes[partition], lane.batch == nil, !lane.waiting.isEmpty else { return }
    let count = min(lane.waiting.count, Self.longestBatch)
    lane.batch = (cluster.nextBatch(), Array(lane.waiting.prefix(count)))
    lane.waiting.removeFirst(count)
    lanes[partition] = lane
    send(to: partition)
  }

  private func send(to partition: TopicPartition) {
    guard let (number, records) = lanes[partition]?.batch else { return }
    let cluster = cluster
    cluster.request(of: process, to: { cluster.leader(of: partition) }) { reply in
      reply(cluster.append(records.map(\.record), batch: number, to: partition))
    } answer: { [self] first in
      guard let first else { return repeatBatch(of: partition) }
      for (index, waiting) in records.enumerated() {
        let position = RecordPosition(
          topic: partition.topic, partition: partition.partition, offset: first + Int64(index))
        settle([(waiting.submission, waiting.place)], .success(position))
      }
      endBatch(of: partition)
    }
  }

  /// The batch under way was not answered.
  private func repeatBatch(of partition: TopicPartition) {
    guard let batch = lanes[partition]?.batch else { return }
    let isLate = batch.records.contains { world.now - $0.since >= Self.deliveryTimeout }
    guard isLate || world.happens(cluster.behaviour.doubt > 0 ? Self.fatalShare : 0) else {
      return process.after(.milliseconds(100)) { [self] in send(to: partition) }
    }
    for waiting in batch.records { cluster.onDoubt(partition, waiting.record) }
    fail(batch.records, .possiblyPersisted, partition)
    let late = lanes[partition]?.waiting.prefix { world.now - $0.since >= Self.deliveryTimeout } ?? []
    lanes[partition]?.waiting.removeFirst(late.count)
    fail(Array(late), .notPersisted, partition)
    endBatch(of: partition)
  }

  private func endBatch(of partition: TopicPartition) {
    lanes[partition]?.batch = nil
    sendNext(to: partition)
  }

  private func fail(_ records: [Waiting], _ code: RDKafkaError.Code, _ partition: TopicPartition) {
    let error = RDKafkaError(code: code, message: partition.topic)
    settle(records.map { ($0.submission, $0.place) }, .failure(error))
  }

  private func settle(_ places: [(Submission, Int)], _ result: Result<RecordPosition, RDKafkaError>) {
    for (submission, place) in places {
      submission.results[place] = result
      submission.open -= 1
      if submission.open == 0 { process.after(0) { submission.completion(submission.results) } }
    }
  }
}
