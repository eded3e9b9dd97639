import FanfareCore
import Logging
import RDKafka

/// The status topic: how many records it has while a worker writes it, and afterwards what they say.
///
/// Nobody reads along, who would take a share of the machine from the worker that is measured: the brokers are asked
/// where the partitions end, which is behind the last record that is acknowledged.
struct StatusLog: Sendable {
  /// How far the topic has come.
  struct Mark: Sendable {
    /// The end of each partition.
    fileprivate var ends: [TopicPartition: Int64]

    /// Records up to there. The topic is the run's own: each partition begins at 0.
    var count: Int { ends.values.reduce(0) { $0 + Int($1) } }
  }

  private let reader: LogReader
  private let topic: String

  /// The status topic of `topics`. Asks nobody yet.
  init(client: KafkaClientConfiguration, topics: Topics, logger: Logger) throws {
    reader = try LogReader(client: client, logger: logger)
    topic = topics.status
  }

  /// Suspends until there are so many records. Throws what the brokers say, and when the task is cancelled.
  func when(_ count: Int) async throws -> Mark {
    let partitions = try await reader.partitions(of: [topic])
    while true {
      let ends = try await reader.ends(of: partitions).map { ($0.partition, max(0, $0.offset)) }
      let mark = Mark(ends: Dictionary(ends) { max($0, $1) })
      if mark.count >= count { return mark }
      try await Task.sleep(for: Self.pause)
    }
  }

  /// The records between two marks; without them, all there are. Throws what is wrong with the first that is no status
  /// record.
  func records(from start: Mark? = nil, to end: Mark? = nil) async throws -> [StatusRecord] {
    var spans = try await reader.spans(of: [topic])
    for index in spans.indices {
      if let start { spans[index].start = max(spans[index].start, start.ends[spans[index].partition] ?? 0) }
      if let end { spans[index].end = end.ends[spans[index].partition] ?? 0 }
    }
    let scan = try reader.scan(spans)
    var statuses: [StatusRecord] = []
    while let records = try await scan.next() {
      for record in records { statuses.append(try StatusRecord.decode(record.value)) }
    }
    return statuses
  }

  private static let pause = Duration.milliseconds(5)
}

extension StatusRecord {
  /// How many devices have got what was sent.
  var delivered: Int { counts[.delivered] + devices.count { $0.outcome == .delivered } }
}
