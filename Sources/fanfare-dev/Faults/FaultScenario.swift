import EmbeddedKafka
import RDKafka

/// A fault to inject into a deployment under load.
struct FaultScenario: Sendable {
  /// A requirement that not every deployment meets.
  enum Need: Sendable {
    /// Brokers that fail on demand.
    case brokerFaults
    /// A registry in a SQLite file.
    case registryFile
    /// A ledger's file on a small file system of its own, which only root can make.
    case smallDisk
    /// Clocks that can be stepped.
    case steppedClocks
    /// An identity provider that issues tokens.
    case identityProvider
  }

  /// The name in the table and for `--row`.
  let name: String
  /// The exact number of records that must be dead-lettered.
  let deadLetters: Int
  /// The number of pushes that it may repeat.
  let repeats: RepeatLimit
  /// Whether the fault may suppress all answers to a push, which then ends as unconfirmed.
  let mayStayUnconfirmed: Bool
  /// Further settings of the processes, as environment variables.
  let settings: [String: String]
  /// Files that the processes find in their directory, with their contents.
  let files: [String: String]
  /// The requirements on the deployment.
  let needs: Set<Need>
  /// Whether the scenario is short enough for CI.
  let isQuick: Bool
  /// The topics, with enough room for the scenario.
  let topics: FaultTopics
  /// The time to live of every tenth send; nil for the default.
  let timeToLive: Duration?
  /// Inspects the arrivals after everything has settled.
  let inspect: (@Sendable (FaultDeployment, FaultLoad) async throws -> FaultFindings)?
  /// Injures and heals the deployment.
  ///
  /// Returns the repeated pushes of each injury if they can be attributed. It notes the end of the injury unless that
  /// is its last step.
  let injure: @Sendable (FaultDeployment, _ isQuick: Bool) async throws -> [Int]

  init(
    _ name: String, isQuick: Bool = false, deadLetters: Int = 0, repeats: RepeatLimit = .none,
    mayStayUnconfirmed: Bool = false,
    settings: [String: String] = [:], files: [String: String] = [:], needs: Set<Need> = [], topics: FaultTopics = .few,
    timeToLive: Duration? = nil,
    inspect: (@Sendable (FaultDeployment, FaultLoad) async throws -> FaultFindings)? = nil,
    injure: @escaping @Sendable (FaultDeployment, _ isQuick: Bool) async throws -> [Int]
  ) {
    self.name = name
    self.isQuick = isQuick
    self.topics = topics
    self.deadLetters = deadLetters
    self.repeats = repeats
    self.mayStayUnconfirmed = mayStayUnconfirmed
    self.settings = settings
    self.files = files
    self.needs = needs
    self.timeToLive = timeToLive
    self.inspect = inspect
    self.injure = injure
  }
}

extension FaultScenario {
  /// All rows of the table, for the size of the broadcast and the length of the outage of APNs.
  static func all(devices: Int, outage: Duration) -> [FaultScenario] {
    processes + kafka + services + trouble + [
      RotatedKeys.scenario,
      Isolation(outage: outage).scenario, KilledBroadcast(devices: devices).scenario, LoginFlood.scenario,
      ReadFlood.scenario, UnreadAnswers.scenario,
      PermanentRefusal().scenario, GiantUser(devices: devices).scenario, TranslatedOffset.scenario,
      AzureStream().scenario,
      FaultScenario("poison records", isQuick: true, deadLetters: Poison.values.count) { deployment, _ in
        try await Poison.post(to: deployment)
        await deployment.noteHealed()
        // Good records follow the poisoned ones.
        try await Task.sleep(for: .seconds(5))
        return []
      },
    ]
  }

  private static let processes = [
    FaultScenario("nothing", isQuick: true) { _, _ in
      try await Task.sleep(for: .seconds(5))
      return []
    },
    KilledWorker.scenario, KilledWorker.pair, ChangingWorkers.scenario,
    FaultScenario("kill -9 of the api") { deployment, _ in
      for _ in 0..<3 {
        try await Task.sleep(for: .milliseconds(Int64.random(in: 500...1500)))
        try await deployment.kill("api", 0)
        try await deployment.startFrontEnd(0)
      }
      return []
    },
    FaultScenario("kill -9 of the ledger", isQuick: true) { deployment, isQuick in
      for _ in 0..<(isQuick ? 1 : 3) {
        try await Task.sleep(for: .milliseconds(Int64.random(in: 500...1500)))
        try await deployment.kill("ledger")
        try await deployment.start("ledger")
        try await deployment.ready("ledger")
      }
      return []
    },
    FaultScenario("disk full for the ledger", needs: [.smallDisk]) { deployment, _ in
      try await Task.sleep(for: .seconds(1))
      try deployment.ledgerDisk.fill()
      try await Task.sleep(for: .seconds(8))
      try deployment.ledgerDisk.free()
      return []
    },
    // Other workers repeat the pushes that it had in flight.
    FaultScenario("a worker frozen past its session", repeats: .some) { deployment, _ in
      try await Task.sleep(for: .seconds(2))
      try await deployment.freeze("worker", 0)
      try await Task.sleep(for: .seconds(20))
      try await deployment.resume("worker", 0)
      await deployment.noteHealed()
      // It must notice that its session has expired.
      try await Task.sleep(for: .seconds(5))
      return []
    },
    // The simulator processes buffered requests later; the workers have given them up by then.
    FaultScenario("the simulator frozen: no service answers", repeats: .some) { deployment, _ in
      try await deployment.freeze("simulator")
      try await Task.sleep(for: .seconds(15))
      try await deployment.resume("simulator")
      return []
    },
  ]

  private static let kafka = [
    // The group may lose its members for so long that partitions move while nothing can be committed.
    FaultScenario("all brokers down for 30 s", repeats: .some, needs: [.brokerFaults]) { deployment, _ in
      try await Task.sleep(for: .seconds(2))
      try await deployment.cluster.setBroker(isUp: false)
      try await Task.sleep(for: .seconds(30))
      try await deployment.cluster.setBroker(isUp: true)
      return []
    },
    FaultScenario("broker connections cut", isQuick: true, repeats: .some, needs: [.brokerFaults]) {
      deployment, isQuick in
      for _ in 0..<(isQuick ? 2 : 5) {
        try await Task.sleep(for: .seconds(1))
        for request in [EmbeddedCluster.Request.produce, .fetch, .heartbeat] {
          try await deployment.cluster.inject([.disconnect, .disconnect, .disconnect], into: request)
        }
      }
      await deployment.noteHealed()
      // Injected errors wait for matching requests.
      try await Task.sleep(for: .seconds(3))
      return []
    },
    FaultScenario("produce errors", needs: [.brokerFaults]) { deployment, _ in
      for _ in 0..<5 {
        try await Task.sleep(for: .seconds(1))
        try await deployment.cluster.inject(
          [.notLeader, .requestTimedOut, .notEnoughReplicas, .notEnoughReplicasAfterAppend, .disconnect], into: .produce
        )
      }
      await deployment.noteHealed()
      try await Task.sleep(for: .seconds(3))
      return []
    },
    FaultScenario("slow acknowledgements", needs: [.brokerFaults]) { deployment, _ in
      try await deployment.cluster.setRoundTripTime(.milliseconds(400))
      try await Task.sleep(for: .seconds(10))
      try await deployment.cluster.setRoundTripTime(.zero)
      return []
    },
  ]

  private static let services = [
    service(
      "429 storm", #"{"service":"apns","action":"answer","status":429,"reason":"TooManyRequests","retryAfter":3}"#,
      seconds: 8),
    service("GOAWAY storm", #"{"service":"apns","action":"goaway","share":0.02}"#, seconds: 10),
    // A dropped connection loses the answers of all its pushes in flight; some pushes lose theirs repeatedly.
    service(
      "connections dropped by the service", #"{"service":"apns","action":"drop","share":0.02}"#, seconds: 10,
      repeats: .some,
      mayStayUnconfirmed: true),
    service("one platform answers nothing", #"{"service":"apns","action":"silence"}"#, seconds: 40),
    service("one platform answers 503", #"{"service":"fcm","action":"answer","status":503}"#, seconds: 15),
    service(
      "credentials expired", #"{"service":"apns","action":"answer","status":403,"reason":"ExpiredProviderToken"}"#,
      seconds: 12),
  ]

  /// A failure of a push service for some seconds.
  private static func service(
    _ name: String, _ fault: String, seconds: Int, repeats: RepeatLimit = .none, mayStayUnconfirmed: Bool = false
  ) -> FaultScenario {
    FaultScenario(
      name, isQuick: name == "429 storm", repeats: repeats, mayStayUnconfirmed: mayStayUnconfirmed
    ) { deployment, _ in
      try await deployment.order(fault)
      try await Task.sleep(for: .seconds(seconds))
      try await deployment.withdrawFaults()
      return []
    }
  }
}

/// Further findings of a scenario at the devices.
struct FaultFindings: Sendable {
  /// Pushes that did not arrive.
  var lost = 0
  /// Pushes that had to expire, and did.
  var expired = 0
  /// Broken promises: pushes that arrived too late, or did not arrive in time.
  var errors = 0
  /// Figures for the table; nil for those that the scenario has noted.
  var observed: String?
}

/// The topics of a deployment.
///
/// The embedded cluster keeps 5 MiB of each partition in memory. So the retry topics, which keep all records deferred
/// in an outage, and the status topic, which the audit reads from its beginning, have as many partitions as the sends
/// topic.
struct FaultTopics: Sendable {
  /// The topics for the records of a minute or two.
  ///
  /// The delays are short to save time, and few because the group of each pump must form again when workers are killed.
  static let few = FaultTopics(retryDelays: [2, 15], partitions: 16)
  /// The topics for an outage of many minutes.
  ///
  /// They have longer delays, and room for ten minutes of deferred records.
  /// 24 partitions were too few, because the few users do not spread evenly. With more partitions batches are smaller,
  /// and the embedded cluster, which scans a partition's log for each batch, is slower.
  static let many = FaultTopics(retryDelays: [2, 15, 60, 300], partitions: 32)

  /// The delays of the retry topics, in seconds.
  let retryDelays: [Int]
  /// Partitions of each topic.
  let partitions: Int32
}
