import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Testing

@testable import fanfare_dev

@Suite(.timeLimit(.minutes(1))) struct BenchPipelineTests {
  /// It would be waited for a minute that a topic that is not there reaches some number of records.
  @Test func topicsThatCannotBeMadeEndTheRun() async throws {
    let kafka = try TestKafka.embedded()
    defer { kafka.cluster?.close() }
    let administrator = try TopicAdministrator(client: kafka.client(), logger: TestKafka.quietLogger)
    await #expect(throws: BenchError.self) { try await BenchPipeline.create(Topics(prefix: "bench"), administrator) }
  }
}
