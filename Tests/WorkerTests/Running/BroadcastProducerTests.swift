import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Two producers write for a worker: one that gathers records, and one for the
/// records that the rest of a broadcast waits for.
struct BroadcastProducerTests {
  @Test func recordThatABroadcastWaitsForIsNotGathered() async throws {
    let registry = try TemporaryRegistry()
    let now = SystemWallClock().now()
    for user in 0..<3 { try await registry.register("user\(user)", .fcm, "token\(user)", at: now) }
    let log = [Audience.everyone, .user("user0")].enumerated().map { offset, audience in
      let send = SendRequest(
        id: .random(), acceptedAt: now + .seconds(1), audience: audience,
        content: Content(message: Message(body: "hello")))
      return ConsumedRecord(
        topic: MemoryGroup.partition.topic, partition: 0, offset: Int64(offset), timestamp: now.milliseconds, key: nil,
        value: send.encoded()[...])
    }
    let group = MemoryGroup(log: log)
    let (gathering, prompt) = (MemorySink(), MemorySink())
    var configuration = WorkerConfiguration()
    configuration.broadcasts.undividedDevices = 2
    let worker = Worker(
      configuration: configuration, consumer: MemoryMember(of: group), producer: gathering, broadcastProducer: prompt,
      registry: registry.registry, senders: [.default: [.fcm: ScriptedSender(.fcm)]], logger: TestKafka.quietLogger)
    async let running: Void = worker.run()
    try await within(.seconds(60)) { await group.waitForCommit { $0.offset == 2 } }
    worker.shutDown()
    try await running
    #expect(gathering.topics == ["fanfare.status"] && prompt.topics == ["fanfare.segments"])
  }
}
