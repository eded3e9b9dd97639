import FanfareCore
import Logging
import RDKafka

/// Puts records that were in the log before onto a topic again, a few at a time.
struct LogWriter {
  /// How many are on their way at once; each may have half a megabyte.
  private static let batch = 64

  private let producer: Producer
  private var waiting: [ProducerRecord] = []

  /// Runs the body with a writer. Returns when Kafka has acknowledged everything that was added, and throws when it has
  /// not.
  static func with<Value>(
    _ kafka: KafkaSettings, command: String, logger: Logger, _ body: (inout LogWriter) async throws -> Value
  ) async throws -> Value {
    var configuration = ProducerConfiguration(client: try kafka.client(command))
    configuration.maximumRecordBytes = StatusRecord.maximumRecordSize
    let producer = try Producer(configuration: configuration, logger: logger)
    async let running: Void = producer.run()
    let result: Result<Value, any Error>
    do {
      var writer = LogWriter(producer: producer)
      let value = try await body(&writer)
      try await writer.flush()
      result = .success(value)
    } catch {
      result = .failure(error)
    }
    await producer.close(timeout: .seconds(10))
    await running
    return try result.get()
  }

  private init(producer: Producer) {
    self.producer = producer
  }

  /// Adds a record; suspends while there are enough on their way.
  mutating func add(_ record: ProducerRecord) async throws {
    waiting.append(record)
    if waiting.count == Self.batch { try await flush() }
  }

  private mutating func flush() async throws {
    for result in await producer.send(waiting) { _ = try result.get() }
    waiting.removeAll(keepingCapacity: true)
  }
}
