import FanfareCore
import Logging
import RDKafka
import Worker

/// Puts dead letters' records back onto the topic they came from, with the keys and the bytes they had, and so under the same ids.
struct Redrive {
  let kafka: KafkaSettings
  let isDryRun: Bool
  let logger: Logger

  /// What became of the letters.
  struct Outcome: Encodable {
    /// Records that were put back, or would be.
    var redriven = 0
    /// Letters that are not whole: their records cannot be put back.
    var cut: [String] = []
    /// Letters of records that came from no topic that workers read.
    var foreign: [String] = []
    /// Letters that could not be read.
    var unreadable = 0
  }

  /// Puts them back; returns when Kafka has acknowledged all of them, and throws when it has not.
  func run(only place: LogPlace?, where matches: (DeadLetter) -> Bool) async throws -> Outcome {
    let box = try DeadLetterBox(kafka, logger: logger)
    return try await LogWriter.with(kafka, command: "dead-letters", logger: logger) { writer in
      var outcome = Outcome()
      outcome.unreadable = try await box.read(only: place) { item in
        let letter = item.letter
        guard matches(letter) else { return true }
        if !letter.isWhole {
          outcome.cut.append(item.place.description)
        } else if ![kafka.topics.sends, kafka.topics.segments].contains(letter.origin.topic) {
          outcome.foreign.append(item.place.description)
        } else {
          outcome.redriven += 1
          guard !isDryRun else { return true }
          try await writer.add(ProducerRecord(topic: letter.origin.topic, key: letter.key, event: letter.value))
        }
        return true
      }
      return outcome
    }
  }
}
