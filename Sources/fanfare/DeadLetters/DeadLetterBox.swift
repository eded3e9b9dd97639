import FanfareCore
import Logging
import RDKafka
import Roles

/// The dead-letter topic of a deployment, read from its beginning to the end that it has then.
struct DeadLetterBox {
  private let topic: String
  private let scan: TopicScan

  /// Contacts no broker yet.
  init(_ kafka: KafkaSettings, logger: Logger) throws {
    topic = kafka.topics.deadLetter
    scan = TopicScan(
      command: "dead-letters", reader: try LogReader(client: try kafka.client("dead-letters"), logger: logger))
  }

  /// One letter, where it lies.
  struct Item {
    let place: LogPlace
    let letter: DeadLetter
    /// The letter's record as it is.
    let record: ArraySlice<UInt8>
  }

  /// Hands over every letter that there is, or the one at the place; what is no letter is passed over and counted.
  /// `take` says whether to go on. Returns how many could not be read.
  func read(only place: LogPlace? = nil, _ take: (Item) async throws -> Bool) async throws -> Int {
    var spans = try await scan.reader.spans(of: [topic])
    if let place {
      spans = spans.filter { $0.partition.partition == place.partition && ($0.start..<$0.end).contains(place.offset) }
      spans = spans.map { LogSpan(partition: $0.partition, start: place.offset, end: place.offset + 1) }
    }
    var unreadable = 0
    try await scan.read(spans) { records in
      for record in records {
        let letter: DeadLetter
        do throws(RecordError) { letter = try DeadLetter.decode(record.value) } catch {
          unreadable += 1
          continue
        }
        let place = LogPlace(partition: record.partition, offset: record.offset)
        guard try await take(Item(place: place, letter: letter, record: record.value)) else { return false }
      }
      return true
    }
    return unreadable
  }
}
