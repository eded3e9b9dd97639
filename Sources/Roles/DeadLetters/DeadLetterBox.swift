package import FanfareCore
package import FrontEnd
package import Logging
import RDKafka

/// Reads the dead-letter topic.
package struct DeadLetterBox {
  let topic: String
  let scan: TopicScan

  /// Creates a reader in the name of a client. It contacts no broker yet.
  package init(
    _ kafka: KafkaSettings, client: String = "dead-letters", patience: TopicScan.Patience, logger: Logger
  ) throws {
    topic = kafka.topics.deadLetter
    scan = TopicScan(patience, reader: try LogReader(client: try kafka.client(client), logger: logger))
  }

  /// A dead letter and its place.
  package struct Item {
    package let place: LogPlace
    package let letter: DeadLetter
    /// The letter's record, undecoded.
    package let record: ArraySlice<UInt8>
  }

  /// Passes every letter from the position on, or only those at the places, to `take`, which returns whether to
  /// continue.
  ///
  /// Returns the number of unreadable records.
  package func read(
    only places: Set<LogPlace>? = nil, after position: DeadLetterPosition? = nil,
    _ take: (Item) async throws -> Bool
  ) async throws -> Int {
    var spans = try await scan.reader.spans(of: [topic])
    if let position {
      spans = spans.map { span in
        let start = max(span.start, position.offsets[span.partition.partition] ?? span.start)
        return LogSpan(partition: span.partition, start: min(start, span.end), end: span.end)
      }
    }
    if let places { spans = spans.compactMap { $0.covering(places) } }
    var unreadable = 0
    try await scan.read(spans) { records in
      for record in records {
        let place = LogPlace(partition: record.partition, offset: record.offset)
        if let places, !places.contains(place) { continue }
        let letter: DeadLetter
        do throws(RecordError) { letter = try DeadLetter.decode(record.value) } catch {
          unreadable += 1
          continue
        }
        guard try await take(Item(place: place, letter: letter, record: record.value)) else { return false }
      }
      return true
    }
    return unreadable
  }
}

extension LogSpan {
  /// The part of the span from the first to the last of the places in it; nil if none is.
  fileprivate func covering(_ places: Set<LogPlace>) -> LogSpan? {
    let offsets = places.filter { $0.partition == partition.partition && (start..<end).contains($0.offset) }
      .map(\.offset)
    guard let first = offsets.min(), let last = offsets.max() else { return nil }
    return LogSpan(partition: partition, start: first, end: last + 1)
  }
}
