import FanfareCore
import Logging
import RDKafka

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
    var configuration = ProducerConfiguration(client: try kafka.client("dead-letters"))
    configuration.maximumRecordBytes = StatusRecord.maximumRecordSize
    let producer = try Producer(configuration: configuration, logger: logger)
    let box = try DeadLetterBox(kafka, logger: logger)
    async let running: Void = producer.run()
    let outcome: Result<Outcome, any Error>
    do {
      outcome = .success(try await move(box, only: place, where: matches, to: producer))
    } catch {
      outcome = .failure(error)
    }
    await producer.close(timeout: .seconds(10))
    await running
    return try outcome.get()
  }

  private func move(
    _ box: DeadLetterBox, only place: LogPlace?, where matches: (DeadLetter) -> Bool, to producer: Producer
  ) async throws -> Outcome {
    var outcome = Outcome()
    var waiting: [ProducerRecord] = []
    outcome.unreadable = try await box.read(only: place) { item in
      let letter = item.letter
      guard matches(letter) else { return true }
      guard letter.isWhole else {
        outcome.cut.append(item.place.description)
        return true
      }
      guard letter.origin.topic == kafka.topics.sends else {
        outcome.foreign.append(item.place.description)
        return true
      }
      outcome.redriven += 1
      guard !isDryRun else { return true }
      waiting.append(ProducerRecord(topic: letter.origin.topic, key: letter.key, value: letter.value))
      guard waiting.count == Self.batch else { return true }
      try await Self.send(&waiting, to: producer)
      return true
    }
    try await Self.send(&waiting, to: producer)
    return outcome
  }

  /// Records on their way at a time; each may have half a megabyte.
  private static let batch = 64

  private static func send(_ records: inout [ProducerRecord], to producer: Producer) async throws {
    for result in await producer.send(records) { _ = try result.get() }
    records.removeAll(keepingCapacity: true)
  }
}
