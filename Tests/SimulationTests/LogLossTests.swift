import FanfareCore
import RDKafka
import Testing
import Worker

@testable import Simulation

/// Logs that have gaps, lose their end or their beginning.
struct LogLossTests {
  private func log(_ batches: [Int]) -> SimulatedLog {
    var log = SimulatedLog()
    for (number, count) in batches.enumerated() { append(count, batch: UInt64(number), to: &log) }
    return log
  }

  private func append(_ count: Int, batch: UInt64, to log: inout SimulatedLog) {
    let record = SimulatedLog.Record(key: nil, value: [], timestamp: 0)
    _ = log.append(Array(repeating: record, count: count), batch: batch)
  }

  @Test func gapsAreLeftOut() {
    var log = log([2])
    log.leaveGap(3)
    append(1, batch: 9, to: &log)
    #expect(log.read(from: 0, limit: 10).map(\.offset) == [0, 1, 5])
    #expect(log.read(from: 3, limit: 10).map(\.offset) == [5])
    #expect(log.end == 6)
  }

  @Test func wholeBatchesAreLostAtTheEnd() {
    var log = log([2, 3, 1])
    log.elect()
    #expect(log.truncate(batches: 2).map(\.offset) == [2, 3, 4, 5])
    #expect(log.end == 2)
    // The leader does not know the lost batches any more.
    #expect(log.first(of: 0) == 0 && log.first(of: 1) == nil)
    append(5, batch: 9, to: &log)
    #expect(log.end(of: 0) == 2)
    #expect(log.truncate(batches: 100).count == 7)
    #expect(log.end == 0)
  }

  @Test func oldestRecordsAreDeleted() {
    var log = log([2, 3])
    #expect(log.delete(3).map(\.offset) == [0, 1, 2])
    #expect(log.start == 3)
    #expect(log.read(from: 0, limit: 10).map(\.offset) == [3, 4])
    #expect(log.delete(9).count == 2)
    #expect(log.start == 5 && log.end == 5)
  }

  /// A client that compares leader epochs goes on where the log was cut; another one skips what has come to stand below
  /// its position.
  @Test(arguments: [true, false]) func memberReadsOnAfterTheCut(knowsEpochs: Bool) throws {
    let world = World(seed: 1, trace: Trace())
    let cluster = SimulatedCluster(in: world)
    cluster.behaviour.knowsEpochs = knowsEpochs
    cluster.create("topic", partitions: 1)
    let partition = TopicPartition(topic: "topic", partition: 0)
    @Sendable func append(_ numbers: Range<Int>) {
      for number in numbers {
        let record = SimulatedLog.Record(key: nil, value: Array("\(number)".utf8), timestamp: 0)
        _ = cluster.append([record], batch: cluster.nextBatch(), to: partition)
      }
    }
    append(0..<10)
    try runInWorld(world) { process in
      let client = KafkaClientConfiguration(bootstrapServers: "simulated", clientID: "test")
      var configuration = ConsumerConfiguration(client: client, groupID: "group", topics: ["topic"])
      configuration.autoCommitInterval = nil
      let member = ClusterMember(SimulatedConsumer(configuration, of: process, in: cluster))
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        member.start(in: &tasks)
        await member.wait { $0.records.count == 10 }
        cluster.elect(partition, after: .seconds(1), losing: 4)
        try await process.pause(.seconds(1))
        append(10..<16)
        await member.wait { $0.records.last?.number == 15 }
        await member.source.close()
      }
      let later = member.seen.records.dropFirst(10).map(\.number)
      #expect(later == Array(knowsEpochs ? 10..<16 : 14..<16))
    }
  }
}
