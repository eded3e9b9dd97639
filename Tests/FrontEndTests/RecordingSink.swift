import FanfareCore
import RDKafka
import Synchronization

@testable import FrontEnd

/// A sink that keeps what it is given, and fails where the test says so.
final class RecordingSink: SendSink {
  private let kept = Mutex<[ProducerRecord]>([])
  private let failure: @Sendable (ProducerRecord) -> RDKafkaError?

  init(failure: @escaping @Sendable (ProducerRecord) -> RDKafkaError? = { _ in nil }) {
    self.failure = failure
  }

  /// What was accepted, in order.
  var records: [ProducerRecord] { kept.withLock { $0 } }

  /// Whether nothing was accepted.
  var isEmpty: Bool { records.isEmpty }

  /// The sends in what was accepted.
  func sends() throws -> [SendRequest] {
    try records.map { try SendRequest.decode($0.value[...], recordTime: UnixTime(milliseconds: 0)) }
  }

  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] { records.map { take($0) } }

  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
  {
    completion(take(record))
  }

  private func take(_ record: ProducerRecord) -> Result<RecordPosition, RDKafkaError> {
    if let error = failure(record) { return .failure(error) }
    return kept.withLock { kept in
      kept.append(record)
      return .success(RecordPosition(topic: record.topic, partition: 0, offset: Int64(kept.count)))
    }
  }
}

extension SendSink {
  /// For sinks that nobody schedules sends into, or to which their order makes no difference.
  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (Result<RecordPosition, RDKafkaError>) -> Void)
  {
    Task { completion(await send([record])[0]) }
  }
}
