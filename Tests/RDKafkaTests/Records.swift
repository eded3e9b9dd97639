import RDKafka

/// A record with a text as its value.
func record(_ topic: String, key: String? = nil, _ value: String, partition: Int32? = nil, headers: [RecordHeader] = [])
  -> ProducerRecord
{
  ProducerRecord(
    topic: topic, partition: partition, key: key.map { Array($0.utf8) }, value: Array(value.utf8), headers: headers)
}

extension ConsumedRecord {
  /// The value as text.
  var text: String {
    String(decoding: value, as: UTF8.self)
  }
}

/// Returns once `condition` is true; throws when the test is cancelled by its time limit.
func until(_ condition: () -> Bool) async throws {
  while !condition() {
    try Task.checkCancellation()
    await Task.yield()
  }
}

/// The error of a result that should have failed.
func failure(_ result: Result<RecordPosition, RDKafkaError>) -> RDKafkaError? {
  guard case .failure(let error) = result else { return nil }
  return error
}
