import FanfareCore
import Logging
import RDKafka
import Roles
import Worker

/// Redrives dead letters: produces their records to their original topics again, and segments to the segments topic.
///
/// Key and bytes stay the same, and so the ids. A header of the record names the letter, so that no letter is redriven
/// twice by mistake.
struct Redrive {
  /// The name of the header that holds the letter's place.
  static let header = "fanfare-redriven"

  let kafka: KafkaSettings
  let isDryRun: Bool
  /// Whether to redrive letters that were redriven before.
  let isRepeated: Bool
  let logger: Logger

  /// The numbers of letters by result.
  struct Outcome: Encodable {
    /// The redriven records; in a dry run, the records that a real run would redrive.
    var redriven = 0
    /// Letters skipped because they were redriven before.
    var redrivenBefore = 0
    /// Letters with a truncated value, which cannot be redriven.
    var cut: [String] = []
    /// Letters of records from topics that workers do not read.
    var foreign: [String] = []
    /// Letters that could not be read.
    var unreadable = 0
  }

  /// The failure of a redrive that had already produced records.
  struct Interruption: Error, CustomStringConvertible {
    /// The largest number of records that may have been redriven.
    let redriven: Int
    /// Whether the same command would redrive them again.
    let isRepeated: Bool
    let cause: any Error

    var description: String {
      "up to \(redriven) records were redriven, the same command \(isRepeated ? "starts with them again" : "continues with the rest"): \(cause)"
    }
  }

  /// Redrives the letters and returns when Kafka has acknowledged all records.
  ///
  /// Throws an `Interruption` if some records may have been produced.
  func run(only place: LogPlace?, where matches: (DeadLetter) -> Bool) async throws -> Outcome {
    let box = try DeadLetterBox(kafka, logger: logger)
    let before = isRepeated ? [] : try await redrivenBefore()
    var outcome = Outcome()
    do {
      try await LogWriter.with(kafka, command: "dead-letters", logger: logger) { writer in
        outcome.unreadable = try await box.read(only: place) { item in
          let letter = item.letter
          guard matches(letter) else { return true }
          let name = item.place.description
          if before.contains(name) {
            outcome.redrivenBefore += 1
          } else if !letter.isWhole {
            outcome.cut.append(name)
          } else if !origins.contains(letter.origin.topic) {
            outcome.foreign.append(name)
          } else {
            outcome.redriven += 1
            guard !isDryRun else { return true }
            var record = ProducerRecord(topic: topic(of: letter), key: letter.key, event: letter.value)
            record.headers.append(RecordHeader(name: Self.header, text: name))
            try await writer.add(record)
          }
          return true
        }
      }
    } catch {
      guard outcome.redriven > 0, !isDryRun else { throw error }
      throw Interruption(redriven: outcome.redriven, isRepeated: isRepeated, cause: error)
    }
    return outcome
  }

  /// The topics that workers read.
  private var origins: [String] { [kafka.topics.sends, kafka.topics.segments] + kafka.topics.ingress }

  /// A segment that its topic refused has its send's record as origin, because it has no place of its own.
  private func topic(of letter: DeadLetter) -> String {
    do throws(RecordError) {
      _ = try SegmentRecord.decode(letter.value[...], recordTime: letter.at)
      return kafka.topics.segments
    } catch {
      return letter.origin.topic
    }
  }

  /// The places of the letters redriven before, if the log still has their redriven records.
  private func redrivenBefore() async throws -> Set<String> {
    let reader = try LogReader(client: try kafka.client("dead-letters"), logger: logger)
    let spans = try await reader.spans(of: origins)
    var letters: Set<String> = []
    try await TopicScan(command: "dead-letters", reader: reader).read(spans) { records in
      for header in records.lazy.flatMap(\.headers) where header.name == Self.header {
        letters.insert(String(decoding: header.value, as: UTF8.self))
      }
      return true
    }
    return letters
  }
}
