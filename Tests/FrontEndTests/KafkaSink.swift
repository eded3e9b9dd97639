import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Testing

@testable import FrontEnd

/// The real producer as the front end's sink.
struct KafkaSink: SendSink {
  let producer: Producer

  var refusesRecords: Bool { producer.refusesRecords }

  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] {
    await producer.send(records)
  }
}

/// A send read from its topic.
struct StoredSend {
  let key: String?
  let headers: [RecordHeader]
  let send: SendRequest
}

extension TestKafka {
  /// Creates a sends topic with a prefix of its own.
  func sendsTopic() async throws -> Topics {
    let topics = Topics(prefix: group())
    let specification = TopicSpecification(name: topics.sends, partitions: 4)
    if let cluster {
      try cluster.createTopics([specification])
    } else {
      let administrator = try TopicAdministrator(client: client("test-admin"), logger: Self.quietLogger)
      for creation in try await administrator.createTopics([specification]) {
        if case .failed(let error) = creation.outcome { throw error }
      }
    }
    return topics
  }

  /// Reads the sends of a topic, which must be exactly `count`, in order within each key.
  func sends(in topics: Topics, count: Int) async throws -> [StoredSend] {
    try await withConsumer(topics: [topics.sends], group: group()) { consumer in
      var stored: [StoredSend] = []
      consumer.grant(records: count + 1)
      for await event in consumer.events {
        switch event {
        case .assigned(_, let rebalance), .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
        case .failed(let error): throw error
        case .records(let records):
          for record in records {
            stored.append(
              StoredSend(
                key: record.key.map { String(decoding: $0, as: UTF8.self) }, headers: record.headers,
                send: try SendRequest.decode(record.value, recordTime: UnixTime(milliseconds: record.timestamp))))
          }
        }
        if stored.count >= count { break }
      }
      let spans = try await LogReader(client: client(), logger: Self.quietLogger).spans(of: [topics.sends])
      #expect(spans.reduce(0) { $0 + $1.end - $1.start } == Int64(count), "as many records as sends")
      return stored
    }
  }
}
