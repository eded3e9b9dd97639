import EmbeddedKafka
import FanfareCore
import Foundation
import Logging
import RDKafka
import Support
import Testing

/// The embedded cluster drops records when a partition is full.
@Suite struct EmbeddedClusterTests {
  /// Large sends to one user fill one partition, because no worker runs. The front end refuses sends before it is full.
  @Test(.timeLimit(.minutes(3)), .enabled(if: TestKafka.realServers == nil))
  func frontEndRefusesSendsBeforeClusterDropsThem()
    async throws
  {
    try await Deployment.with { deployment in
      let api = try await deployment.startFrontEnd()
      var random = SeededGenerator(seed: 1)
      var accepted: Int64 = 0
      var status = 0
      // Far more than the 5 MiB that a partition can hold.
      for _ in 0..<400 {
        let noise = (0..<3_800).map { _ in String(UInt64.random(in: .min ... .max, using: &random), radix: 36) }
          .joined()
        let body = #"{"to":{"user":"bob"},"template":{"properties":{"noise":"\#(noise)"}}}"#
        status = try await api.call("POST", "/api/sends", user: "alice", body: body).status
        guard status == 202 else { break }
        accepted += 1
      }
      #expect(status == 503)
      #expect(accepted > 10)
      let reader = try LogReader(
        client: KafkaClientConfiguration(
          bootstrapServers: deployment.bootstrapServers, clientID: "test", profile: .embedded),
        logger: Logger(label: "test"))
      let there = try await reader.spans(of: [deployment.topics.sends]).reduce(0) { $0 + $1.count }
      #expect(there == accepted)
    }
  }
}
