import FanfareCore
import RDKafka

/// The model of the client with which `InterimOffsets` keeps offsets in a group of its own.
///
/// `@unchecked Sendable`: see `World`.
struct SimulatedInterimGroup: PositionStore, @unchecked Sendable {
  let group: SimulatedGroup
  let process: SimulatedProcess
  let cluster: SimulatedCluster
  let timeout: World.Time

  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    let refusal = try await ask { group.store(offsets) }
    if let refusal { throw refusal.error("commit") }
  }

  func beginCommit(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    request({ group.store(offsets) }) { _ in }
  }

  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await ask { partitions.compactMap { group.positions[$0] } }
  }

  private func ask<Answer: Sendable>(_ carryOut: @escaping () -> Answer) async throws(RDKafkaError) -> Answer {
    try await process.answer(within: timeout) { request(carryOut, answer: $0) }
  }

  private func request<Answer>(_ carryOut: @escaping () -> Answer, answer: @escaping (Answer?) -> Void) {
    let (group, cluster) = (group, cluster)
    cluster.request(of: process, to: { cluster.coordinator(of: group) }, { $0(carryOut()) }, answer: answer)
  }
}

extension SimulatedProcess {
  /// Suspends the caller until a request of the process is answered, which is repeated when its connection breaks.
  /// Throws `timedOut` without an answer, and `closed` when the caller is cancelled.
  func answer<Answer: Sendable>(
    within timeout: World.Time, _ ask: @escaping (_ answer: @escaping (Answer?) -> Void) -> Void
  ) async throws(RDKafkaError) -> Answer {
    let deadline = world.now + timeout
    let result: Answer?
    do {
      result = try await answer { (deliver: @escaping (Answer?) -> Void) in
        func attempt() {
          ask { [self] answer in
            if let answer { return deliver(answer) }
            guard world.now < deadline else { return }
            after(.milliseconds(100)) { attempt() }
          }
        }
        attempt()
        after(timeout) { deliver(nil) }
      }
    } catch {
      throw RDKafkaError(code: .closed, message: "the consumer is closed")
    }
    guard let result else { throw RDKafkaError(code: .timedOut, message: "the coordinator does not answer") }
    return result
  }
}
