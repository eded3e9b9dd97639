import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

@testable import Worker

/// Workers that take over from one another.
struct SuccessionTests {
  @Test(arguments: 0..<5) func successorOfDeadWorkerDoesOnlyUnsettledSends(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let registry = try TemporaryRegistry()
    let now = SystemWallClock().now()
    var log: [ConsumedRecord] = []
    for user in 0..<40 {
      try await registry.register("user\(user)", .fcm, "token\(user)", at: now)
      let send = SendRequest(
        id: .random(), acceptedAt: now, audience: .user("user\(user)"),
        content: Content(message: Message(body: "hello")))
      let key = send.audience.recordKey(of: send.id, hub: send.hub)
      let offset = (log.last?.offset ?? 4) + Int64.random(in: 1...3, using: &random)
      log.append(
        ConsumedRecord(
          topic: MemoryGroup.partition.topic, partition: 0, offset: offset, timestamp: now.milliseconds, key: key[...],
          value: send.encoded()[...]))
    }
    let group = MemoryGroup(log: log)
    let fcm = ScriptedSender(.fcm)
    func worker() -> Worker {
      Worker(
        configuration: WorkerConfiguration(), consumer: MemoryMember(of: group), producer: MemorySink(),
        broadcastProducer: MemorySink(),
        registry: registry.registry,
        senders: [.default: [.fcm: fcm]], logger: TestKafka.quietLogger)
    }
    // Every life answers some more, the last one everything.
    var unanswered = Set((0..<40).map { "token\($0)" })
    var settled: Set<Int64> = []
    for life in 0..<4 {
      let already = fcm.pushes.count
      let expected = unanswered
      unanswered = life == 3 ? [] : unanswered.filter { _ in Int.random(in: 0..<3, using: &random) > 0 }
      let silent = unanswered
      fcm.setScript { push, _ in silent.contains(push.handle) ? nil : PushOutcome(.accepted, status: 200) }
      let worker = worker()
      let run = Task { try await worker.run() }
      settled = Set(log.indices.filter { !silent.contains("token\($0)") }.map { log[$0].offset })
      let goal = settled
      let offsets = log.map(\.offset)
      try await within(.seconds(60)) {
        await group.waitForCommit { end in
          let ranges = Array(SettledRuns(end.settledRuns, from: end.offset).ranges)
          return offsets.allSatisfy { offset in
            (offset < end.offset || ranges.contains { $0.contains(offset) }) == goal.contains(offset)
          }
        }
      }
      if life < 3 { run.cancel() } else { worker.shutDown() }
      // Where it was cancelled, how it ends does not matter.
      _ = try? await run.value
      #expect(Set(fcm.pushes[already...].map(\.handle)) == expected)
      #expect(fcm.pushes.count - already == expected.count)
    }
    #expect(group.committed == PartitionOffset(partition: MemoryGroup.partition, offset: log[39].offset + 1))
  }
}
