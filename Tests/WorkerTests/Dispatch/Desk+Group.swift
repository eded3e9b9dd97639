import FanfareCore
import RDKafka

@testable import Worker

/// What the consumer group and the operator do with the worker, and what a test may see of it.
extension Desk {
  /// The group assigns partitions.
  mutating func assign(_ partitions: [TopicPartition], _ rebalance: Rebalance = Rebalance {}) {
    turn { $0.assign(partitions, rebalance) }
  }

  /// The group takes partitions back.
  mutating func revoke(_ partitions: [TopicPartition] = [Desk.partition], _ rebalance: Rebalance = Rebalance {}) {
    turn { $0.revoke(partitions, rebalance) }
  }

  /// The partitions have another owner already.
  mutating func lose(_ partitions: [TopicPartition] = [Desk.partition], _ rebalance: Rebalance = Rebalance {}) {
    turn { $0.lose(partitions, rebalance) }
  }

  /// The operator ends the worker.
  mutating func shutDown() { turn { $0.shutDown() } }

  /// What is held in memory.
  var held: HeldMemory { dispatcher.items.held }
  /// Why the worker is not ready.
  var readinessProblems: [ReadinessProblem] { dispatcher.readinessProblems }
  /// The state of a platform's circuit breaker.
  func circuit(_ sender: Int) -> CircuitBreaker.State { dispatcher.lanes[sender].breaker.state }
  /// How many pushes wait in a platform's queue.
  func queued(_ sender: Int) -> Int { dispatcher.lanes[sender].queuedCount }
  /// The places that pushes take, by sender.
  var places: [PlatformLane.Places] { dispatcher.lanes.map(\.places) }
  /// Places taken in all lanes together.
  var takenPlaces: Int { dispatcher.lanes.pushes }
  /// The credit that the consumer has not used.
  var outstandingCredit: Int { dispatcher.items.credit.outstanding }
  /// Whether the consumer delivers no segments.
  var pausesSegments: Bool { dispatcher.items.pausesSegments }
  /// Whether no send waits for another of its key.
  var hasNoLanes: Bool { dispatcher.items.hasNoLanes }
  /// How many deferred records of pages wait for their turn, and how many are open pages.
  var awaitingTurn: Int { dispatcher.broadcasts.returned.count }
  var readmitted: Int { dispatcher.items.count { $0.kind == .readmitted } }
  /// How many pauses of broadcasts the worker knows of.
  var knownPauses: Int { dispatcher.deferral.knownPauses }
  /// The order of a platform's deferred pushes.
  func order(_ sender: Int) -> DeferredOrder { dispatcher.lanes[sender].order }
  /// Whether a service is noticed not to answer.
  func isSilent(_ sender: Int) -> Bool { dispatcher.lanes[sender].silence.isNoticed }
  /// The device of a push; nil if its item is gone.
  func device(of push: Push) -> DeviceProgress? { dispatcher.items.device(Ticket(rawValue: push.ticket)) }
  /// Whether a partition's first unsettled record is far behind the last one taken.
  var isFarBehind: Bool { dispatcher.partitions.spans.isFarBehind }
  /// The share of the room that is taken.
  var saturation: Double { dispatcher.saturation }
  var configuration: WorkerConfiguration { dispatcher.configuration }
  var retryTopics: [Topics.Retry] { dispatcher.topics.retries }
  /// How many spans are open.
  var openTraces: Int { dispatcher.traces.count }

  /// How many devices rest in memory.
  var restingCount: Int { dispatcher.lanes.reduce(0) { $0 + $1.resting.count } }
  /// When the first of them is looked at.
  var nextRested: Int64? { dispatcher.lanes.compactMap(\.resting.next).min() }

  /// The partitions that were given back without their last positions.
  var positionsLeft: [[TopicPartition]] {
    alarms.compactMap { alarm in if case .positionsLeft(let partitions, _) = alarm { partitions } else { nil } }
  }

  /// How many sends that had begun were left to the next owner, each time.
  var workLeft: [Int] {
    alarms.compactMap { alarm in if case .workLeft(_, let sends) = alarm { sends } else { nil } }
  }

  /// The offset committed for the partition; nil before the first.
  var position: Int64? { group[Self.partition]?.offset }
}
