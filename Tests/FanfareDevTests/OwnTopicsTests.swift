import EmbeddedKafka
import FanfareCore
import RDKafka
import Support
import Testing

@testable import fanfare_dev

@Suite(.timeLimit(.minutes(1))) struct OwnTopicsTests {
  @Test func topicsAreCreatedOnAnEmbeddedClusterOfAnotherProcess() async throws {
    let kafka = try TestKafka.embedded()
    defer { kafka.cluster?.close() }
    let topics = Topics(prefix: "own", retryDelays: [1])
    let own = try await OwnTopics(
      topics, partitions: { _ in 8 }, at: kafka.bootstrapServers, logger: TestKafka.quietLogger)
    #expect(own.isEmbedded)
    let reader = try LogReader(client: own.client, logger: TestKafka.quietLogger)
    #expect(Set(try await reader.topics()).isSuperset(of: topics.all))
    await own.delete()
  }
}
