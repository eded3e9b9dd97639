import EmbeddedKafka
import FanfareCore
import Logging
import RDKafka
import Registry
import Support
import Synchronization
import Testing

@testable import Worker

/// Topics of their own on the test cluster, a registry, two scripted senders, and workers as many as the test wants.
struct Rig: Sendable {
  let kafka: TestKafka
  let topics: Topics
  let group: String
  let registry: TemporaryRegistry
  let apns = ScriptedSender(.apns)
  let fcm = ScriptedSender(.fcm)

  init(kafka: TestKafka? = nil, partitions: Int32 = 4) async throws {
    let kafka = try kafka ?? TestKafka.shared()
    self.kafka = kafka
    topics = Topics(prefix: kafka.group())
    group = kafka.group()
    registry = try TemporaryRegistry()
    let specifications = topics.all.map { TopicSpecification(name: $0, partitions: partitions) }
    if let cluster = kafka.cluster {
      try cluster.createTopics(specifications)
    } else {
      let administrator = try TopicAdministrator(client: kafka.client("test-admin"), logger: TestKafka.quietLogger)
      for creation in try await administrator.createTopics(specifications) {
        if case .failed(let error) = creation.outcome { throw error }
      }
    }
  }

  /// Registers a device of a user.
  @discardableResult
  func register(_ user: String, _ platform: Platform, _ handle: String, at time: UnixTime = SystemWallClock().now())
    async throws
    -> RegistrationID
  {
    try await registry.register(user, platform, handle, at: time)
  }

  /// Puts sends on the topic, in order, and returns them.
  @discardableResult
  func post(to users: [String], through producer: Producer) async throws -> [SendRequest] {
    let now = SystemWallClock().now()
    let sends = users.map { user in
      SendRequest(
        id: .random(), acceptedAt: now, audience: .user(user), content: Content(message: Message(body: "hello")))
    }
    try await post(
      sends.map {
        ProducerRecord(topic: topics.sends, key: $0.audience.recordKey(of: $0.id, hub: $0.hub), value: $0.encoded())
      }, through: producer)
    return sends
  }

  /// Puts records on a topic.
  func post(_ records: [ProducerRecord], through producer: Producer) async throws {
    for result in await producer.send(records) { _ = try result.get() }
  }

  /// A worker, and its consumer for questions about the group.
  func worker(
    sink: any RecordSink, configure: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws -> (worker: Worker, consumer: Consumer) {
    var configuration = WorkerConfiguration()
    configuration.consumerGroup = group
    configure(&configuration)
    var settings = configuration.consumer(client: kafka.client("test-worker"), topics: topics)
    // The shortest session with which the embedded cluster forms groups reliably; its rebalances take that less a
    // second.
    settings.sessionTimeout = .seconds(kafka.cluster == nil ? 10 : 4)
    let consumer = try Consumer(configuration: settings, logger: TestKafka.quietLogger)
    let worker = Worker(
      configuration: configuration, consumer: consumer, producer: sink, broadcastProducer: sink,
      registry: registry.registry,
      senders: [.default: [.apns: apns, .fcm: fcm]], topics: topics, logger: TestKafka.quietLogger)
    return (worker, consumer)
  }

  /// The sum of committed positions in all partitions of the sends topic.
  func committed() async throws -> Int64 {
    let count = Int32(4)
    return try await kafka.withConsumer(topics: [topics.sends], group: group) { consumer in
      let partitions = (0..<count).map { TopicPartition(topic: topics.sends, partition: $0) }
      return try await consumer.committed(partitions).reduce(0) { $0 + $1.offset }
    }
  }

  /// How many records of the sends topic a member's group knows to be settled, in order or not.
  func settled(_ consumer: Consumer) async throws -> Int64 {
    let partitions = (0..<Int32(4)).map { TopicPartition(topic: topics.sends, partition: $0) }
    return try await consumer.committed(partitions).reduce(0) { sum, end in
      SettledRuns(end.settledRuns, from: end.offset).ranges.reduce(sum + end.offset) { $0 + Int64($1.count) }
    }
  }

  /// Reads a topic until `count` values have come that `decode` makes something of.
  func read<Value: Sendable>(
    _ count: Int, from topic: String, _ decode: @escaping @Sendable (ArraySlice<UInt8>) throws -> Value
  )
    async throws -> [Value]
  {
    try await kafka.withConsumer(topics: [topic], group: kafka.group()) { consumer in
      consumer.grant(records: 1_000_000)
      return try await within(.seconds(60)) {
        var values: [Value] = []
        for await event in consumer.events {
          switch event {
          case .records(let records): values += try records.map { try decode($0.value) }
          case .assigned(_, let rebalance), .revoked(_, let rebalance), .lost(_, let rebalance): rebalance.complete()
          case .failed: break
          }
          if values.count >= count { break }
        }
        return values
      }
    }
  }

  /// The first status records on the topic.
  func statuses(_ count: Int) async throws -> [StatusRecord] {
    try await read(count, from: topics.status) { try StatusRecord.decode($0) }
  }
}

extension TemporaryRegistry {
  /// Registers a device of a user.
  @discardableResult
  func register(_ user: String, _ platform: Platform, _ handle: String, at time: UnixTime) async throws
    -> RegistrationID
  {
    let id = try await registry.issue(hub: .default, handle: handle, at: time)
    let application = DeviceRequest(
      id: id, hub: .default, user: user, platform: platform, handle: handle, tags: [])
    return try await registry.complete(application, at: time).id
  }
}

/// It took too long.
struct TimedOut: Error {}

/// The body's value; throws `TimedOut` when it takes longer than a generous limit.
func within<Value: Sendable>(_ limit: Duration, _ body: @escaping @Sendable () async throws -> Value) async throws
  -> Value
{
  try await withThrowingTaskGroup(of: Value.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: limit)
      throw TimedOut()
    }
    defer { group.cancelAll() }
    guard let value = try await group.next() else { throw TimedOut() }
    return value
  }
}

/// Passes records on at once, and keeps their acknowledgements back until told to let them through.
final class HeldSink: RecordSink {
  private struct State {
    var isOpen = false
    var held: [@Sendable () -> Void] = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    var acknowledged = 0
  }

  private let producer: Producer
  private let state = Mutex(State())

  init(_ producer: Producer) {
    self.producer = producer
  }

  func submit(
    _ records: [ProducerRecord], completion: @escaping @Sendable ([Result<RecordPosition, RDKafkaError>]) -> Void
  ) {
    producer.submit(records) { [self] results in
      let (isOpen, reached) = state.withLock { state -> (Bool, [CheckedContinuation<Void, Never>]) in
        if !state.isOpen { state.held.append { completion(results) } }
        state.acknowledged += results.count
        let reached = state.waiters.filter { $0.count <= state.acknowledged }.map(\.continuation)
        state.waiters.removeAll { $0.count <= state.acknowledged }
        return (state.isOpen, reached)
      }
      if isOpen { completion(results) }
      for waiter in reached { waiter.resume() }
    }
  }

  /// Returns when Kafka has acknowledged `count` records in all.
  func waitForAcknowledgements(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.acknowledged < count { state.waiters.append((count, continuation)) }
        return state.acknowledged >= count
      }
      if isThere { continuation.resume() }
    }
  }

  /// Lets all acknowledgements through, the held ones first.
  func open() {
    let held = state.withLock { state in
      state.isOpen = true
      defer { state.held = [] }
      return state.held
    }
    for completion in held { completion() }
  }
}
