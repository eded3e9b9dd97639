import FanfareCore
import Logging
import RDKafka
import Roles
import Worker

/// Puts dead letters' records back onto the topic they came from, with the keys and the bytes they had, and so under
/// the same ids. A header of the record names the letter, so that no letter is put back twice by mistake.
struct Redrive {
  /// What the header is called whose value is the letter's place.
  static let header = "fanfare-redriven"

  let kafka: KafkaSettings
  let isDryRun: Bool
  /// Whether also letters are put back that have been before.
  let isRepeated: Bool
  let logger: Logger

  /// What became of the letters.
  struct Outcome: Encodable {
    /// Records that were put back, or would be.
    var redriven = 0
    /// Letters that were put back before, and are left alone.
    var redrivenBefore = 0
    /// Letters that are not whole: their records cannot be put back.
    var cut: [String] = []
    /// Letters of records that came from no topic that workers read.
    var foreign: [String] = []
    /// Letters that could not be read.
    var unreadable = 0
  }

  /// What has ended it when some were put back.
  struct Interruption: Error, CustomStringConvertible {
    /// At most so many records.
    let redriven: Int
    /// Whether the same command would put them back once more.
    let isRepeated: Bool
    let cause: any Error

    var description: String {
      "up to \(redriven) records were put back, the same command \(isRepeated ? "begins with them again" : "goes on with the rest"): \(cause)"
    }
  }

  /// Puts them back; returns when Kafka has acknowledged all of them, and throws when it has not: an `Interruption`
  /// once there may be some.
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
          } else if ![kafka.topics.sends, kafka.topics.segments].contains(letter.origin.topic) {
            outcome.foreign.append(name)
          } else {
            outcome.redriven += 1
            guard !isDryRun else { return true }
            var record = ProducerRecord(topic: letter.origin.topic, key: letter.key, event: letter.value)
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

  /// The places of the letters that were put back, as far as the log still has what was.
  private func redrivenBefore() async throws -> Set<String> {
    let reader = try LogReader(client: try kafka.client("dead-letters"), logger: logger)
    let spans = try await reader.spans(of: [kafka.topics.sends, kafka.topics.segments])
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
