import FanfareCore
import RDKafka

/// Checks that something happens wherever something waits: while no fault lasts, the committed position of each
/// partition with unread records moves.
///
/// `@unchecked Sendable`: see `World`.
final class Liveness: @unchecked Sendable {
  /// A topic and the group that reads it.
  struct Reading {
    let topic: String
    let group: String
    /// How long the position may stand still before a record.
    let patience: World.Time
  }

  private static let interval: World.Time = .seconds(5)

  private let cluster: SimulatedCluster
  private let readings: [Reading]
  private let violate: (String) -> Void
  /// The positions behind which records wait, and since when.
  private var standing: [TopicPartition: (position: Int64, since: World.Time)] = [:]
  private(set) var checks = 0
  /// From when on no fault lasts; nil: that is not known yet.
  var quietSince: World.Time?

  init(of cluster: SimulatedCluster, _ readings: [Reading], violate: @escaping (String) -> Void) {
    (self.cluster, self.readings, self.violate) = (cluster, readings, violate)
  }

  /// The topics of a deployment. A deferred record waits until it is due; a segment until its pages are finished.
  static func readings(of topics: Topics, by group: String) -> [Reading] {
    [
      Reading(topic: topics.sends, group: group, patience: .seconds(60)),
      Reading(topic: topics.segments, group: group, patience: .seconds(120)),
    ]
      + topics.retries.map {
        Reading(topic: $0.name, group: $0.name, patience: World.Time($0.delay) + .seconds(60))
      }
  }

  /// Whether no record waits, but for those that are not due.
  var isDone: Bool { readings.allSatisfy { $0.topic == $0.group || waiting(in: $0).isEmpty } }

  /// Looks at all partitions, again and again.
  func watch() {
    cluster.world.after(Self.interval) { [weak self] in
      guard let self else { return }
      for reading in readings { look(at: reading) }
      watch()
    }
  }

  private func look(at reading: Reading) {
    let now = cluster.world.now
    let waiting = waiting(in: reading)
    for number in 0..<cluster.partitions(of: reading.topic) {
      checks += 1
      let partition = TopicPartition(topic: reading.topic, partition: Int32(number))
      guard let position = waiting[partition] else {
        standing[partition] = nil
        continue
      }
      guard let former = standing[partition], former.position == position else {
        standing[partition] = (position, now)
        continue
      }
      guard let quietSince, now - max(former.since, quietSince) > reading.patience else { continue }
      violate("\(partition) stands still at \(position) for \((now - former.since) / 1_000_000) s")
      standing[partition] = (position, now)
    }
  }

  /// The positions of the partitions with records behind them.
  private func waiting(in reading: Reading) -> [TopicPartition: Int64] {
    var waiting: [TopicPartition: Int64] = [:]
    for number in 0..<cluster.partitions(of: reading.topic) {
      let partition = TopicPartition(topic: reading.topic, partition: Int32(number))
      let position = cluster.position(partition, of: reading.group)
      // Behind the last record there may be a gap.
      if let last = cluster.log(partition)?.entries.last, position <= last.offset { waiting[partition] = position }
    }
    return waiting
  }
}
