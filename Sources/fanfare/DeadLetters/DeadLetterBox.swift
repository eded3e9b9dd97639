import ArgumentParser
import FanfareCore
import Logging
import RDKafka
import Roles

/// Reads the dead-letter topic from its beginning to its present end.
struct DeadLetterBox {
  private let topic: String
  private let scan: TopicScan

  /// Creates a reader. It contacts no broker yet.
  init(_ kafka: KafkaSettings, logger: Logger) throws {
    topic = kafka.topics.deadLetter
    scan = TopicScan(
      command: "dead-letters", reader: try LogReader(client: try kafka.client("dead-letters"), logger: logger))
  }

  /// A dead letter and its place.
  struct Item {
    let place: LogPlace
    let letter: DeadLetter
    /// The letter's record, undecoded.
    let record: ArraySlice<UInt8>
  }

  /// Passes every letter, or only the one at the place, to `take`, which returns whether to continue.
  ///
  /// Returns the number of unreadable records.
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

/// The options that select dead letters.
struct LetterFilter: ParsableArguments {
  @Option(help: "Only letters with this reason.")
  var reason: ReasonArgument?

  @Option(help: "Only sends with content for this platform; a record that cannot be read as a send has no platform.")
  var platform: PlatformArgument?

  @Option(help: ArgumentHelp("Only records dead-lettered at this time or later (RFC 3339).", valueName: "time"))
  var from: TimeArgument?

  @Option(help: ArgumentHelp("Only records dead-lettered before this time (RFC 3339).", valueName: "time"))
  var to: TimeArgument?

  func validate() throws {
    if let from, let to, from.time >= to.time { throw ValidationError("--to must be later than --from") }
  }

  func matches(_ letter: DeadLetter) -> Bool {
    if let reason, letter.reason != reason.reason { return false }
    if let from, letter.at < from.time { return false }
    if let to, letter.at >= to.time { return false }
    guard let platform else { return true }
    do throws(RecordError) {
      return try SendRequest.decode(letter.value[...], recordTime: letter.at).coveredPlatforms.contains(
        platform.platform)
    } catch {
      return false
    }
  }
}

/// A dead letter in a list: everything but the record's value.
struct LetterLine: Encodable {
  /// The letter's place in the dead-letter topic.
  let letter: String
  let reason: String
  let detail: String
  /// The record's original place.
  let origin: String
  let at: String
  /// The size of the record's value in bytes.
  let valueSize: Int
  /// Whether the value is complete, so that the record can be redriven.
  let isWhole: Bool

  /// `letter`, for sorting.
  let place: LogPlace

  private enum CodingKeys: CodingKey {
    case letter, reason, detail, origin, at, valueSize, isWhole
  }

  init(_ item: DeadLetterBox.Item) {
    place = item.place
    letter = item.place.description
    reason = item.letter.reason.rawValue
    detail = item.letter.detail
    origin = "\(item.letter.origin.topic)/\(item.letter.origin.partition)/\(item.letter.origin.offset)"
    at = item.letter.at.description
    valueSize = item.letter.valueSize
    isWhole = item.letter.isWhole
  }

  /// The letter as a line of text.
  var text: String {
    Printable.line(
      "\(letter)  \(at)  \(reason)  from \(origin)  \(valueSize) bytes\(isWhole ? "" : " (not all kept)")  \(detail)")
  }
}
