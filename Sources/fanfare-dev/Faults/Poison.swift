import FanfareCore
import RDKafka

/// Poisoned records of every kind.
enum Poison {
  /// The values; each must be dead-lettered.
  static let values: [[UInt8]] = {
    func text(_ text: String) -> [UInt8] { Array(text.utf8) }
    let event =
      #"{"specversion":"1.0","id":"00000000-0000-4000-8000-000000000001","type":"fanfare.send.v1","source":"/x","data":"#
    return [
      [], [0xFF, 0xFE, 0, 1], text("{"), text("null"),
      text(event + #"{"to":{"user":"a"},"message":{"body":"\#(String(repeating: "x", count: 600 * 1024))"}}}"#),
      text(
        #"{"specversion":"1.0","id":"00000000-0000-4000-8000-000000000002","type":"fanfare.send.v9","source":"/x","data":{}}"#
      ),
      text(event + #"{"message":{"body":"to nobody"}}}"#), text(event + #"{"to":{"user":"a"}}}"#),
      text(event + #"{"to":{"planet":"earth"},"message":{"body":"x"}}}"#),
      text(event + String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000) + "}"),
      text(event.replacing("fanfare.send.v1", with: "fanfare.retry.v1") + #"{"part":0}}"#),
    ]
  }()

  /// Produces them to the sends topic, among good records.
  static func post(to deployment: FaultDeployment) async throws {
    var configuration = ProducerConfiguration(client: deployment.kafka)
    configuration.maximumRecordBytes = 2 << 20
    let producer = try Producer(configuration: configuration, logger: deployment.logger)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await producer.run() }
      let records = values.enumerated().map {
        ProducerRecord(topic: deployment.topics.sends, key: Array("\($0)".utf8), value: $1)
      }
      for result in await producer.send(records) { _ = try result.get() }
      group.cancelAll()
    }
  }
}
