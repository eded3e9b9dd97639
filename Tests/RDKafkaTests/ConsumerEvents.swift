import RDKafka

struct Unexpected: Error {
  var what: String
}

extension AsyncStream<ConsumerEvent>.Iterator {
  /// The next event that is not an error.
  mutating func change() async -> ConsumerEvent? {
    while let event = await next(isolation: #isolation) {
      if case .failed = event { continue }
      return event
    }
    return nil
  }

  /// The partitions of the next non-empty assignment; completes all rebalances until then.
  mutating func assignment() async throws -> Set<TopicPartition> {
    while let event = await change() {
      switch event {
      case .assigned(let partitions, let rebalance):
        rebalance.complete()
        if !partitions.isEmpty { return Set(partitions) }
      case .revoked(let partitions, let rebalance), .lost(let partitions, let rebalance):
        rebalance.complete()
        if !partitions.isEmpty { throw Unexpected(what: "revoked \(partitions)") }
      case .records, .failed: break
      }
    }
    throw Unexpected(what: "the stream ended")
  }
}
