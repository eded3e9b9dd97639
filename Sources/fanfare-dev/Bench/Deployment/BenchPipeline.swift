import EmbeddedKafka
import FanfareCore
import FoundationEssentials
import Ledger
import PushSimulator
import RDKafka
import Roles
import Worker

/// A cluster and workers in separate processes for one run, with sends and status records.
final class BenchPipeline: Sendable {
  /// The unit in which finished work is counted.
  enum Counting: Sendable {
    /// A status record, which stands for one send.
    case records
    /// A device that a status record names or counts.
    case devices
  }

  /// The worker's progress and resource usage at a moment.
  struct Sample: Sendable {
    var moment: ContinuousClock.Instant
    /// The number of status records, or of devices.
    var count: Int
    var usage: ProcessUsage
    /// The ends of the status topic; nil if devices are counted.
    var mark: StatusLog.Mark?
  }

  let rig: BenchRig
  let sink: Sink
  /// The status topic, with the outcomes.
  let statuses: StatusLog
  /// The client configuration of the cluster.
  let client: KafkaClientConfiguration
  let topics: Topics
  /// Whether the cluster is embedded.
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
    isEmbedded = client.profile.isEmbedded
    kafkaSettings = """
      kafka:
        bootstrapServers: "\(client.bootstrapServers)"
        \(isEmbedded ? "embedded: true" : "durabilityCheck: off")
        topicPrefix: \(topics.prefix)
      log: {level: warning}

      """
    statuses = try StatusLog(client: client, topics: topics, logger: rig.logger)
    devices = counting == .devices ? try DeviceCounter(client: client, topics: topics, logger: rig.logger) : nil
    var configuration = ProducerConfiguration(client: client)
    configuration.linger = .milliseconds(20)
    producer = try Producer(configuration: configuration, logger: rig.logger)
  }

  /// Runs `body` with a new cluster, or with new topics on the cluster that the user named.
  ///
  /// Afterwards it ends all processes and deletes the topics.
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

  /// Starts a worker that pushes to the sink, and drains and ends it when `body` has returned.
  ///
  /// `registry` is a file. `connections` is the most connections to APNs, and also to a simulator's FCM.
  func withWorker<Value>(
    registry: String, connections: Int, settings: String = "", _ body: (ChildProcess) async throws -> Value
  ) async throws -> Value {
    try await withWorkers(1, registry: "{path: \(registry)}", connections: connections, settings: settings) { workers in
      try await body(workers[0])
    }
  }

  /// Starts workers that share the work, and ends them when `body` has returned.
  ///
  /// `registry` is the section of the workers' settings. `join` returns when the next worker may start.
  func withWorkers<Value>(
    _ count: Int, registry: String, connections: Int, settings: String = "",
    join: (ChildProcess) async throws -> Void = { _ in },
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
      try await join(workers[workers.count - 1])
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

  /// Starts a front end, passes its port to `body`, and ends it when `body` has returned.
  ///
  /// Its callers are those of an htpasswd file; nil lets all in whose password is their name.
  func withFrontEnd<Value>(
    registry: String, htpasswd: String? = nil, _ body: (ChildProcess, Int) async throws -> Value
  ) async throws -> Value {
    let ledger = rig.path("ledger.sqlite")
    // The front end is ready only when a ledger has created its file.
    _ = try SQLiteLedger(SQLiteLedgerConfiguration(path: ledger))
    let authentication = htpasswd.map { "method: htpasswd, file: \($0)" } ?? "method: demo"
    let api = try rig.startRole(
      "api", isEmbedded: isEmbedded,
      settings: kafkaSettings + """
        registry: {path: \(registry)}
        ledger: {path: \(ledger)}
        api: {port: 0}
        hub:
          default:
            authentication: {\(authentication), everyone: ["send:user", "send:broadcast"]}
            quota: {\(BenchRig.noQuotas)}

        """)
    defer { api.destroy() }
    let addresses = try await api.addresses(of: "api", "operations")
    guard let port = Int(addresses[0].split(separator: ":").last ?? "") else {
      throw BenchError("the front end announced no port")
    }
    try await Ready.wait(for: api, operations: addresses[1])
    do { return try await body(api, port) } catch { throw BenchError("\(error)\n\(api.lastWords)") }
  }

  /// Produces sends to the sends topic, and returns when Kafka has acknowledged all of them.
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

  /// The number of all records ever produced to the sends topic, by any process.
  func produced() async throws -> Int {
    let reader = try LogReader(client: client, logger: rig.logger)
    return try await reader.ends(of: try await reader.partitions(of: [topics.sends])).reduce(0) {
      $0 + Int(max(0, $1.offset))
    }
  }

  /// The number of partitions of the sends topic. A development broker named by `--kafka` creates four at any request.
  func partitionsOfSends() async throws -> Int {
    try await LogReader(client: client, logger: rig.logger).partitions(of: [topics.sends]).count
  }

  /// Waits until the count of status records or devices is reached, and samples the worker then.
  ///
  /// Throws after the time limit.
  func sample(_ worker: ChildProcess, at count: Int, within limit: Duration = .seconds(180)) async throws -> Sample {
    try await samples([worker], at: count, within: limit)[0]
  }

  /// Waits until the count is reached, and samples each of the workers then. Throws after the time limit.
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

  /// The results of the devices of single sends, between two samples or in total.
  func results(from start: Sample? = nil, to end: Sample? = nil) async throws -> [DeviceResult] {
    try await statuses.records(from: start?.mark, to: end?.mark).flatMap(\.devices)
  }

  /// The number of devices with the outcome delivered.
  func delivered() async throws -> Int {
    if let devices { return devices.delivered }
    return try await statuses.records().reduce(0) { $0 + $1.delivered }
  }

  /// Throws unless the sink counted each push once that is delivered according to the status records.
  func checkSink(delivered: Int, before: Int?) async throws {
    guard let before, let after = try await sink.accepted() else { return }
    guard after - before == delivered else {
      throw BenchError(
        "the status records say that \(delivered) pushes were accepted; the sink accepted \(after - before)")
    }
  }
}

extension Measurement {
  /// The worker's performance between two samples, by the difference of their counts.
  ///
  /// If that is zero because the work is so little that it was all done at once, the count is `planned`.
  init(planned: Int, from start: BenchPipeline.Sample, to end: BenchPipeline.Sample) {
    self.init(count: end.count > start.count ? end.count - start.count : planned, from: start, to: end)
  }

  /// The worker's performance between two samples, with a count from another source.
  init(count: Int, from start: BenchPipeline.Sample, to end: BenchPipeline.Sample) {
    self.init(
      count: count, seconds: (end.moment - start.moment) / .seconds(1), from: start.usage, to: end.usage)
  }
}
