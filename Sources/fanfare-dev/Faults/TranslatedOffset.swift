import FanfareCore
import RDKafka

/// All workers are killed, and their group's positions are moved back with the metadata copied, as a tool that mirrors
/// groups to another cluster does. The runs in the metadata are not about these positions: nothing may be skipped.
enum TranslatedOffset {
  /// How far the positions are moved.
  private static let shift: Int64 = 3

  static let scenario = FaultScenario("the translated offset", repeats: .some) { deployment, _ in
    // Sends settle above others, so that the commits have metadata.
    try await deployment.order(#"{"service":"apns","action":"silence","share":0.2}"#)
    try await Task.sleep(for: .seconds(5))
    for worker in 0..<FaultDeployment.workers { try await deployment.kill("worker", worker) }
    try await deployment.withdrawFaults()
    guard try await moveBack(deployment) > 0 else { throw BenchError("no position had metadata") }
    for worker in 0..<FaultDeployment.workers { try await deployment.start("worker", worker) }
    await deployment.noteHealed()
    try await Task.sleep(for: deployment.sessionPatience)
    return []
  }

  /// Moves the workers' positions as the only member of their group. Returns how many of them had metadata.
  private static func moveBack(_ deployment: FaultDeployment) async throws -> Int {
    let topics = deployment.topics
    var configuration = ConsumerConfiguration(
      client: deployment.kafka, groupID: "\(topics.prefix).workers", topics: [topics.sends, topics.segments])
    configuration.autoCommitInterval = nil
    let consumer = try Consumer(configuration: configuration, logger: deployment.logger)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await consumer.run() }
      var moved = 0
      var isClosing = false
      for await event in consumer.events {
        switch event {
        case .assigned(let partitions, let rebalance):
          rebalance.complete()
          // The dead members' partitions come in a later assignment.
          guard !partitions.isEmpty, !isClosing else { continue }
          let committed = try await consumer.committed(partitions)
          moved += committed.count { $0.metadata?.isEmpty == false }
          try await consumer.commit(
            committed.map { end in
              PartitionOffset(
                partition: end.partition, offset: max(0, end.offset - shift), metadata: end.metadata)
            })
          if moved > 0 {
            isClosing = true
            group.addTask { await consumer.close() }
          }
        case .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
        case .records, .failed: break
        }
      }
      try await group.waitForAll()
      return moved
    }
  }
}
