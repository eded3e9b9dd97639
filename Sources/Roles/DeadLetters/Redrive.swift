package import FanfareCore
package import FrontEnd
package import Logging
import RDKafka
import Worker

/// Redrives dead letters: produces their records to their original topics again, and segments to the segments topic.
///
/// Key and bytes stay the same, and so the ids. A header of the record names the letter, so that no letter is redriven
/// twice by mistake.
package struct Redrive {
  /// The name of the header that holds the letter's place.
  static let header = "fanfare-redriven"

  let kafka: KafkaSettings
  let client: String
  let isDryRun: Bool
  let isRepeated: Bool
  let patience: TopicScan.Patience
  let logger: Logger

  /// Creates a redrive that talks to Kafka in the name of a client.
  /// `isRepeated`: whether to redrive letters that were redriven before.
  package init(
    kafka: KafkaSettings, client: String = "dead-letters", isDryRun: Bool, isRepeated: Bool,
    patience: TopicScan.Patience = .reports(command: "dead-letters"), logger: Logger
  ) {
    self.kafka = kafka
    self.client = client
    self.isDryRun = isDryRun
    self.isRepeated = isRepeated
    self.patience = patience
    self.logger = logger
  }

  /// The failure of a redrive that had already produced records.
  package struct Interruption: Error, CustomStringConvertible {
    /// The largest number of records that may have been redriven.
    package let redriven: Int
    /// Whether the same command would redrive them again.
    let isRepeated: Bool
    /// A position before which Kafka has acknowledged all records; nil: none is known.
    package let next: DeadLetterPosition?
    let cause: any Error

    package var description: String {
      "up to \(redriven) records were redriven, the same command \(isRepeated ? "starts with them again" : "continues with the rest"): \(cause)"
    }
  }

  /// Redrives the matching letters, or only those at the places, and returns when Kafka has acknowledged all records.
  ///
  /// Begins at the position and ends after `limit` records. Throws an `Interruption` if some records may have been
  /// produced.
  package func run(
    only places: Set<LogPlace>?, after position: DeadLetterPosition? = nil, limit: Int = .max,
    where matches: (DeadLetter) -> Bool
  ) async throws -> RedriveOutcome {
    let box = try DeadLetterBox(kafka, client: client, patience: patience, logger: logger)
    var outcome = RedriveOutcome()
    var oldest: UnixTime?
    outcome.unreadable = try await box.read(only: places, after: position) { item in
      if matches(item.letter) { oldest = min(oldest ?? item.letter.at, item.letter.at) }
      return true
    }
    guard let oldest else { return outcome }
    let before = isRepeated ? [] : try await redrivenBefore(since: oldest, reader: box.scan.reader)
    // Up to the letter that is being examined, and up to the last record that Kafka has acknowledged.
    var (reached, acknowledged) = (position?.offsets ?? [:], position?.offsets ?? [:])
    do {
      try await LogWriter.with(kafka, command: client, logger: logger) { writer in
        _ = try await box.read(only: places, after: position) { item in
          let letter = item.letter
          defer { reached[item.place.partition] = item.place.offset + 1 }
          guard matches(letter) else { return true }
          if places != nil { outcome.found.insert(item.place) }
          let name = item.place.description
          if before.contains(name) {
            outcome.redrivenBefore += 1
          } else if !letter.isWhole {
            outcome.cut.append(item.place)
          } else if !origins.contains(letter.origin.topic) {
            outcome.foreign.append(item.place)
          } else if outcome.redriven == limit {
            outcome.next = DeadLetterPosition(reached)
            return false
          } else {
            outcome.redriven += 1
            guard !isDryRun else { return true }
            var record = ProducerRecord(topic: topic(of: letter), key: letter.key, event: letter.value)
            record.headers.append(RecordHeader(name: Self.header, text: name))
            if try await writer.add(record) { acknowledged = reached }
          }
          return true
        }
      }
    } catch {
      guard outcome.redriven > 0, !isDryRun else { throw error }
      throw Interruption(
        redriven: outcome.redriven, isRepeated: isRepeated,
        next: acknowledged.isEmpty ? nil : DeadLetterPosition(acknowledged), cause: error)
    }
    return outcome
  }

  /// The topics that workers read.
  private var origins: [String] { [kafka.topics.sends, kafka.topics.segments] + kafka.topics.ingress }

  /// A segment that its topic refused has its send's record as origin, because it has no place of its own.
  private func topic(of letter: DeadLetter) -> String {
    if case .segment? = letter.decodedRecord() { kafka.topics.segments } else { letter.origin.topic }
  }

  /// The places of the letters redriven since the time, if the log still has their redriven records.
  ///
  /// Each partition is read from its end backwards, in growing chunks, down to records older than the time: usually
  /// only a small part of it.
  private func redrivenBefore(since time: UnixTime, reader: LogReader) async throws -> Set<String> {
    // The letter has the time of a worker's clock, its redriven record that of another machine's.
    let since = (time + .seconds(-3600)).milliseconds
    var letters: Set<String> = []
    var unread = try await reader.spans(of: origins)
    var size = Int64(10_000)
    while unread.contains(where: { $0.count > 0 }) {
      let chunks = unread.map { LogSpan(partition: $0.partition, start: max($0.start, $0.end - size), end: $0.end) }
      // The latest record of the chunk decides: a client may have produced records with times of the past.
      var latest: [TopicPartition: Int64] = [:]
      try await TopicScan(patience, reader: reader).read(chunks) { records in
        for record in records {
          let time = record.timestamp < 0 ? .max : record.timestamp
          latest[record.topicPartition] = max(latest[record.topicPartition] ?? .min, time)
          for header in record.headers where header.name == Self.header {
            letters.insert(String(decoding: header.value, as: UTF8.self))
          }
        }
        return true
      }
      unread = zip(unread, chunks).compactMap { span, chunk in
        guard chunk.start > span.start, latest[span.partition].map({ $0 >= since }) ?? true else { return nil }
        return LogSpan(partition: span.partition, start: span.start, end: chunk.start)
      }
      size *= 4
    }
    return letters
  }
}
