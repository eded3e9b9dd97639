import FanfareCore
import RDKafka
import Testing

@testable import Simulation

/// A check that finds nothing must be one that can find something.
struct LivenessTests {
  private let world = World(seed: 1, trace: Trace())
  private let cluster: SimulatedCluster
  private let liveness: Liveness
  private let found = Found()

  private final class Found {
    var texts: [String] = []
  }

  init() {
    cluster = SimulatedCluster(in: world)
    cluster.create("t", partitions: 2)
    let found = found
    liveness = Liveness(of: cluster, [Liveness.Reading(topic: "t", group: "g", patience: .seconds(60))]) {
      found.texts.append($0)
    }
    for number: Int32 in 0...1 {
      let records = [SimulatedLog.Record(key: nil, value: [], timestamp: 0)]
      _ = cluster.append(
        records, batch: cluster.nextBatch(), to: TopicPartition(topic: "t", partition: number))
    }
    liveness.watch()
  }

  private func commit(_ partition: Int32) {
    let position = PartitionOffset(partition: TopicPartition(topic: "t", partition: partition), offset: 1)
    _ = cluster.group("g").store([position])
  }

  @Test func partitionThatStandsStillIsFound() {
    liveness.quietSince = 0
    commit(0)
    world.run(until: .seconds(59))
    #expect(found.texts.isEmpty && !liveness.isDone)
    world.run(until: .seconds(80))
    #expect(found.texts.count == 1 && found.texts.first?.contains("t[1] stands still at 0") == true)
  }

  @Test func partitionMayStandStillWhileFaultsLast() {
    world.run(until: .seconds(100))
    liveness.quietSince = .seconds(100)
    world.run(until: .seconds(150))
    for partition: Int32 in 0...1 { commit(partition) }
    world.run(until: .seconds(300))
    #expect(found.texts.isEmpty && liveness.isDone)
  }
}
