import FanfareCore
import RDKafka
import Worker

/// The model of an idempotent producer of one process.
/// Records of a partition are appended in the order of submission; an answer can be late, or never come.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedProducer: RecordSink, @unchecked Sendable {
  /// Records of one partition on their way.
  private struct Chunk {
    let partition: TopicPartition
    let records: [SimulatedCluster.Stored]
    /// Where they stand among the submitted ones.
    let places: [Int]
    let since: World.Time
  }

  /// A submission whose answers are collected.
  private final class Submission {
    var results: [Result<RecordPosition, RDKafkaError>]
    var open = 0
    let completion: @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void

    init(_ count: Int, _ completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void) {
      let pending = RDKafkaError(code: .notPersisted, message: "not answered")
      results = Array(repeating: .failure(pending), count: count)
      self.completion = completion
    }
  }

  /// How long records are tried before they fail.
  private static let deliveryTimeout: World.Time = .seconds(30)

  private let cluster: SimulatedCluster
  private let process: SimulatedProcess
  /// Before when no further record of a partition can arrive, because earlier ones are on their way.
  private var arrivals: [TopicPartition: World.Time] = [:]

  init(of process: SimulatedProcess, to cluster: SimulatedCluster) {
    self.cluster = cluster
    self.process = process
  }

  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    // A dead process is not answered.
    guard !process.isDead else { return }
    let world = cluster.world
    let submission = Submission(records.count, completion)
    var order: [TopicPartition] = []
    var places: [TopicPartition: [Int]] = [:]
    for (place, record) in records.enumerated() {
      guard let partition = cluster.partition(for: record) else {
        submission.results[place] = .failure(RDKafkaError(code: .unknownTopic, message: record.topic))
        continue
      }
      if places[partition] == nil { order.append(partition) }
      places[partition, default: []].append(place)
    }
    submission.open = order.count
    let timestamp = process.now().milliseconds
    for partition in order {
      let places = places[partition] ?? []
      let stored = places.map { place in
        SimulatedCluster.Stored(
          key: records[place].key, value: records[place].value, timestamp: timestamp, writer: process.name)
      }
      let arrival = max(world.now + cluster.latency(), arrivals[partition] ?? 0)
      arrivals[partition] = arrival
      let chunk = Chunk(partition: partition, records: stored, places: places, since: world.now)
      world.after(arrival - world.now) { [self] in arrive(chunk, submission) }
    }
    if order.isEmpty { process.after(0) { completion(submission.results) } }
  }

  /// The chunk reaches the partition's leader, if there is one.
  private func arrive(_ chunk: Chunk, _ submission: Submission) {
    let world = cluster.world
    // What a process sent before it died may still arrive.
    if process.isDead, world.happens(0.5) { return }
    guard cluster.isUp(chunk.partition), !process.cut.contains(.kafka) else {
      if process.isDead { return }
      guard world.now - chunk.since < Self.deliveryTimeout else {
        return answer(chunk, submission, failing: .notPersisted)
      }
      let again = world.now + .milliseconds(100)
      arrivals[chunk.partition] = max(arrivals[chunk.partition] ?? 0, again)
      return world.after(again - world.now) { [self] in arrive(chunk, submission) }
    }
    if world.happens(cluster.behaviour.doubt) {
      if world.happens(0.5) { _ = cluster.append(chunk.records, to: chunk.partition) }
      return answer(chunk, submission, failing: .possiblyPersisted)
    }
    let first = cluster.append(chunk.records, to: chunk.partition)
    for (index, place) in chunk.places.enumerated() {
      submission.results[place] = .success(
        RecordPosition(
          topic: chunk.partition.topic, partition: chunk.partition.partition, offset: first + Int64(index)))
    }
    finish(submission)
  }

  private func answer(_ chunk: Chunk, _ submission: Submission, failing code: RDKafkaError.Code) {
    for place in chunk.places {
      submission.results[place] = .failure(RDKafkaError(code: code, message: chunk.partition.topic))
    }
    finish(submission)
  }

  private func finish(_ submission: Submission) {
    submission.open -= 1
    guard submission.open == 0 else { return }
    process.after(cluster.latency()) { submission.completion(submission.results) }
  }
}
