import FanfareCore
package import Logging
package import RDKafka

/// Produces records of the log again, in batches that fit into the producer's queue.
package struct LogWriter {
  /// The most records of a batch.
  private static let batchRecords = 64

  private let producer: Producer
  /// The most bytes of a batch of more than one record.
  ///
  /// Half of the producer's queue, which also counts headers. The largest record has 8 MiB.
  private let batchBytes: Int
  private var waiting: [ProducerRecord] = []
  private var waitingBytes = 0

  /// Runs the body with a writer, and returns when Kafka has acknowledged all added records.
  package static func with<Value>(
    _ kafka: KafkaSettings, command: String, logger: Logger, _ body: (inout LogWriter) async throws -> Value
  ) async throws -> Value {
    var configuration = ProducerConfiguration(client: try kafka.client(command))
    configuration.maximumRecordBytes = StatusRecord.maximumRecordSize
    let producer = try Producer(configuration: configuration, logger: logger)
    async let running: Void = producer.run()
    let result: Result<Value, any Error>
    do {
      var writer = LogWriter(producer: producer, batchBytes: configuration.queueBytes / 2)
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

  private init(producer: Producer, batchBytes: Int) {
    self.producer = producer
    self.batchBytes = batchBytes
  }

  /// Adds a record to the batch.
  ///
  /// If the record does not fit, first waits until Kafka has acknowledged the batch. Returns whether it has: then Kafka
  /// has all records added before this one.
  @discardableResult
  package mutating func add(_ record: ProducerRecord) async throws -> Bool {
    let bytes = record.value.count + (record.key?.count ?? 0)
    let isFull = waiting.count == Self.batchRecords || waitingBytes + bytes > batchBytes
    if isFull { try await flush() }
    waiting.append(record)
    waitingBytes += bytes
    return isFull
  }

  private mutating func flush() async throws {
    for result in await producer.send(waiting) { _ = try result.get() }
    waiting.removeAll(keepingCapacity: true)
    waitingBytes = 0
  }
}
