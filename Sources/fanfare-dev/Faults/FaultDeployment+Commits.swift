import FanfareCore
import RDKafka

extension FaultDeployment {
  /// Waits until the workers have committed all that lies on the sends topic by now: no death makes them do it again.
  /// Throws when they have not within two minutes.
  func waitForCommits() async throws {
    let topics = topics
    let reader = try LogReader(client: kafka, logger: logger)
    let partitions = try await reader.partitions(of: [topics.sends])
    let ends = try await reader.ends(of: partitions).filter { $0.offset > 0 }
    try await withTimeLimit(.seconds(120), "the workers' commits") {
      while true {
        let positions = try await reader.committed(by: "\(topics.prefix).workers", in: partitions)
        let committed = Dictionary(uniqueKeysWithValues: positions.map { ($0.partition, $0.offset) })
        if ends.allSatisfy({ committed[$0.partition] ?? 0 >= $0.offset }) { return }
        try await Task.sleep(for: .milliseconds(200))
      }
    }
  }
}
