import EmbeddedKafka
import FanfareCore
import FoundationEssentials
import Ledger
import PushSimulator
import RDKafka
import Roles
import Worker

/// A cluster and a worker in processes of their own, the sends that wait for it, and what it writes: for one run.
final class BenchPipeline: Sendable {
  /// What counts as a part of the work that is done.
  enum Counting: Sendable {
    /// A status record: a send.
    case records
    /// A device that a status record names, or counts.
    case devices
  }

  /// What the worker had done and used at a moment.
  struct Sample: Sendable {
    var moment: ContinuousClock.Instant
    /// Status records, or devices.
    var count: Int
    var usage: ProcessUsage
    /// How far the status topic was; nil where devices are counted.
    var mark: StatusLog.Mark?
  }

  let rig: BenchRig
  let sink: Sink
  /// The outcomes.
  let statuses: StatusLog
  /// Where Kafka is.
  let client: KafkaClientConfiguration
  let topics: Topics
  /// Whether the cluster is an embedded one.
  private let isEmbedded: Bool
  /// The settings of the cluster and the topics, for the roles.
  let kafkaSettings: String
  private let producer: Producer
  private let devices: DeviceCounter?

  private init(
    rig: BenchRig, sink: Sink, client: KafkaClientConfiguration, topics: Topics, counting: Counting
  ) throws {
    self.rig = rig
    self.sink = sink
    self.topics = topics
    self.client = client
    isEmbedded = client.profile == .embedded
    kafkaSettings = """
      kafka:
        bootstrapServers: "\(client.bootstrapServers)"
        \(isEmbedded ? "embedded: true" : "")
        topicPrefix: \(topics.prefix)
      log: {level: warning}

      """
    statuses = try StatusLog(client: client, topics: topics, logger: rig.logger)
    devices = counting == .devices ? try DeviceCounter(client: client, topics: topics, logger: rig.logger) : nil
    var configuration = ProducerConfiguration(client: client)
    configuration.linger = .milliseconds(20)
    producer = try Producer(configuration: configuration, logger: rig.logger)
  }

  /// Runs `body` with a new cluster, or with new topics on the cluster that was given, and ends everything afterwards,
  /// the topics included.
  static func with<Value: Sendable>(
    _ rig: BenchRig, sink: Sink, counting: Counting = .records,
    _ body: @Sendable (BenchPipeline) async throws -> Value
  ) async throws -> Value {
    let topics = Topics(prefix: "bench-\(SendID.random())", retryDelays: Topics.defaultRetryDelays)
    guard let kafka = rig.options.kafka else {
      let broker = try rig.start(
        "broker", settings: "kafka: {topicPrefix: \(topics.prefix), partitions: 64}\nlog: {level: error}\n")
      defer { broker.destroy() }
      let client = KafkaClientConfiguration(
        bootstrapServers: try await broker.address(), clientID: "fanfare-dev", profile: .embedded)
      return try await with(rig, sink: sink, at: client, topics: topics, counting: counting, body)
    }
    let own = try await OwnTopics(
      topics, partitions: { Int32(topics.partitions(of: $0, ofSends: 64)) }, at: kafka, logger: rig.logger)
    let result: Result<Value, any Error>
    do {
      result = .success(try await with(rig, sink: sink, at: own.client, topics: topics, counting: counting, body))
    } catch { result = .failure(error) }
    await own.delete()
    return try result.get()
  }

  private static func with<Value: Sendable>(
    _ rig: BenchRig, sink: Sink, at client: KafkaClientConfiguration, topics: Topics, counting: Counting,
    _ body: @Sendable (BenchPipeline) async throws -> Value
  ) async throws -> Value {
    let pipeline = try BenchPipeline(
      rig: rig, sink: sink, client: client, topics: topics, counting: counting)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await pipeline.producer.run() }
      if let devices = pipeline.devices { group.addTask { await devices.run() } }
      defer { group.cancelAll() }
      return try await body(pipeline)
    }
  }

  /// Starts a worker that pushes to the sink, and ends it when `body` has returned. It drains as any worker does.
  /// `registry` is a file; `connections` are those to APNs at most, and those to a simulator's FCM.
  func withWorker<Value>(
    registry: String, connections: Int, settings: String = "", _ body: (ChildProcess) async throws -> Value
  ) async throws -> Value {
    try await withWorkers(1, registry: "{path: \(registry)}", connections: connections, settings: settings) { workers in
      try await body(workers[0])
    }
  }

  /// Starts workers that share the work, and ends them when `body` has returned. `registry` is what the settings say of
  /// it.
  func withWorkers<Value>(
    _ count: Int, registry: String, connections: Int, settings: String = "",
    _ body: ([ChildProcess]) async throws -> Value
  ) async throws -> Value {
    let hub =
      if case .simulator(_, let directory) = sink.kind {
        """
        hub:
          default:
            authentication: {method: demo}
            simulator: \(directory)
            apns: {maximumConnections: \(connections)}
            fcm: {maximumConnections: \(connections)}

        """
      } else {
        rig.apnsSettings(sink, connections: connections)
      }
    var workers: [ChildProcess] = []
    defer { for worker in workers { worker.destroy() } }
    for _ in 0..<count {
      workers.append(
        try rig.startRole(
          "worker", isEmbedded: isEmbedded, settings: kafkaSettings + "registry: \(registry)\n" + settings + hub))
    }
    let value: Value
    do { value = try await body(workers) } catch {
      throw BenchError((["\(error)"] + workers.map(\.lastWords)).joined(separator: "\n"))
    }
    for worker in workers {
      let status = try await worker.terminate()
      guard status == 0 else { throw BenchError("the worker ended with status \(status)\n\(worker.lastWords)") }
    }
    return value
  }

  /// Starts a front end, and ends it when `body`, which gets its port, has returned.
  func withFrontEnd<Value>(registry: String, _ body: (ChildProcess, Int) async throws -> Value) async throws -> Value {
    let ledger = rig.path("ledger.sqlite")
    // The front end is not ready before a ledger has made its file.
    _ = try LedgerStore(LedgerStoreConfiguration(path: ledger))
    let api = try rig.startRole(
      "api", isEmbedded: isEmbedded,
      settings: kafkaSettings + """
        registry: {path: \(registry)}
        ledger: {path: \(ledger)}
        api: {port: 0}
        hub: {default: {authentication: {method: demo}}}

        """)
    defer { api.destroy() }
    guard let port = Int(try await api.address().split(separator: ":").last ?? "") else {
      throw BenchError("the front end announced no port")
    }
    try await Ready.wait(for: api, port: port)
    do { return try await body(api, port) } catch { throw BenchError("\(error)\n\(api.lastWords)") }
  }

  /// Puts sends on the topic, and returns when all are acknowledged.
  func produce(_ sends: some Sequence<SendRequest>) async throws {
    var batch: [ProducerRecord] = []
    func flush() async throws {
      for result in await producer.send(batch) { _ = try result.get() }
      batch.removeAll(keepingCapacity: true)
    }
    for send in sends {
      batch.append(
        ProducerRecord(
          topic: topics.sends, key: send.audience.recordKey(of: send.id, hub: send.hub), event: send.encoded()))
      if batch.count == 20_000 { try await flush() }
    }
    try await flush()
  }

  /// How many sends were ever put on the topic, whoever did it.
  func produced() async throws -> Int {
    let reader = try LogReader(client: client, logger: rig.logger)
    return try await reader.ends(of: try await reader.partitions(of: [topics.sends])).reduce(0) {
      $0 + Int(max(0, $1.offset))
    }
  }

  /// What the worker has used when so many status records (or devices) have come. Throws when that takes longer than
  /// the limit.
  func sample(_ worker: ChildProcess, at count: Int, within limit: Duration = .seconds(180)) async throws -> Sample {
    try await samples([worker], at: count, within: limit)[0]
  }

  /// What each of the workers has used at that moment.
  func samples(_ workers: [ChildProcess], at count: Int, within limit: Duration = .seconds(180)) async throws
    -> [Sample]
  {
    @Sendable func sample(_ count: Int, _ mark: StatusLog.Mark?) throws -> [Sample] {
      let moment = ContinuousClock.now
      return try workers.map { Sample(moment: moment, count: count, usage: try $0.usage(), mark: mark) }
    }
    return try await withTimeLimit(limit, "the status topic to reach \(count)") { [devices, statuses] in
      if let devices { return try await devices.when(count) { try sample($0, nil) } }
      let mark = try await statuses.when(count)
      return try sample(mark.count, mark)
    }
  }

  /// What became of the devices of single sends, between two moments or in all.
  func results(from start: Sample? = nil, to end: Sample? = nil) async throws -> [DeviceResult] {
    try await statuses.records(from: start?.mark, to: end?.mark).flatMap(\.devices)
  }

  /// How many devices have got what was sent to them.
  func delivered() async throws -> Int {
    if let devices { return devices.delivered }
    return try await statuses.records().reduce(0) { $0 + $1.delivered }
  }

  /// Throws unless every push that the status records call delivered was counted at the sink, once.
  func checkSink(delivered: Int, before: Int?) async throws {
    guard let before, let after = try await sink.accepted() else { return }
    guard after - before == delivered else {
      throw BenchError(
        "the status records say that \(delivered) pushes were accepted; the sink accepted \(after - before)")
    }
  }
}

extension Measurement {
  /// What the worker did between the moments when so much, and `planned` more, had come: as much as was counted then.
  /// So little that it came at once is as much as was planned.
  init(planned: Int, from start: BenchPipeline.Sample, to end: BenchPipeline.Sample) {
    self.init(count: end.count > start.count ? end.count - start.count : planned, from: start, to: end)
  }

  /// What the worker did between two moments, counted in some other way.
  init(count: Int, from start: BenchPipeline.Sample, to end: BenchPipeline.Sample) {
    self.init(
      count: count, seconds: (end.moment - start.moment) / .seconds(1),
      cpuSeconds: end.usage.cpuSeconds - start.usage.cpuSeconds, peakBytes: end.usage.peakBytes)
  }
}
