package import FanfareCore
package import Logging
import Metrics
package import RDKafka

/// A retry topic: each deferred record is held until it is due, and copied to the sends topic.
package struct RetryTopic: PumpedTopic {
  package let name: String
  package let policy: PumpPolicy
  private let topics: Topics
  private let logger: Logger
  private let released: Counter
  private let waiting: Gauge
  private let deadLetters = Counter(
    label: "fanfare_dead_letters_total", dimensions: [("reason", DeadLetter.Reason.tooLarge.rawValue)])

  package init(_ retry: Topics.Retry, topics: Topics, logger: Logger) {
    name = retry.name
    policy = PumpPolicy(.whenDue(delay: retry.delay))
    (self.topics, self.logger) = (topics, logger)
    let dimensions = [("delay_seconds", "\(retry.delay.components.seconds)")]
    released = Counter(label: "fanfare_retries_released_total", dimensions: dimensions)
    waiting = Gauge(label: "fanfare_retries_waiting", dimensions: dimensions)
  }

  /// How late a due record may be released.
  /// Records due within this time are released together, so that Kafka gets fewer and larger batches.
  package static func lateness(of delay: Duration) -> Duration { max(.milliseconds(1), min(delay / 20, .seconds(5))) }

  package func configure(_ consumer: inout ConsumerConfiguration) {
    consumer.prefetchRecords = 1_000
    consumer.prefetchBytes = 8 << 20
    // Deferred records wait for at least a second; the embedded cluster answers every idle fetch after this time.
    consumer.fetchWait = .milliseconds(250)
  }

  package func records(for held: inout HeldRecord, at now: UnixTime) -> [ProducerRecord] {
    guard let error = held.condemnation else {
      return [ProducerRecord(topic: topics.sends, key: held.key, event: held.value)]
    }
    let note = held.isShortened ? " (value of \(held.value.count) bytes left out)" : ""
    let letter = held.letter(because: error, note: note, at: now)
    var records = [ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded())]
    do {
      let retry = try RetryRecord.decode(held.value[...], recordTime: now, now: now)
      // Only counts: the list of its devices is what made it large.
      let status = StatusRecord(
        of: retry.send, as: .settled, retry.statusPart, devices: retry.devices.map(\.whenTooLarge), at: now,
        times: retry.times)
      records.append(
        ProducerRecord(
          topic: topics.status, key: Array("\(retry.send.id)".utf8), event: (status.shortened ?? status).encoded()))
    } catch {
      // A record that cannot be read belongs to no known send.
    }
    if !held.isShortened {
      logger.error(
        "Record dead-lettered",
        metadata: [
          LogKeys.topic: "\(held.place.topic)", LogKeys.partition: "\(held.place.partition)",
          LogKeys.offset: "\(held.place.offset)", LogKeys.reason: "\(letter.reason.rawValue)",
          LogKeys.detail: "\(letter.detail)",
        ])
    }
    return records
  }

  package func count(released due: [HeldRecord], settled: [HeldRecord], waiting held: Int) {
    let condemned = due.count { $0.condemnation != nil && !$0.isShortened }
    if condemned > 0 { deadLetters.increment(by: condemned) }
    let count = due.count { $0.condemnation == nil }
    if count > 0 { released.increment(by: count) }
    waiting.record(held)
  }
}
