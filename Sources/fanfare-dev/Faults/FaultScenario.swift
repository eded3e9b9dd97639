import EmbeddedKafka
import RDKafka

/// One way to injure a deployment while a load runs.
struct FaultScenario: Sendable {
  /// Something that not every deployment has.
  enum Need: Sendable {
    /// Brokers that fail on demand.
    case brokerFaults
    /// A registry in a SQLite file.
    case registryFile
    /// A ledger's file on a small file system of its own, which only root can make.
    case smallDisk
    /// Clocks that can be stepped.
    case steppedClocks
  }

  /// As the table and `--row` call it.
  let name: String
  /// How many records must be set aside, no more and no less.
  let deadLetters: Int
  /// How many pushes it may bring to their devices a second time.
  let repeats: RepeatLimit
  /// Whether it may keep every answer to a push from coming, until that is given up unconfirmed.
  let mayStayUnconfirmed: Bool
  /// Settings of the deployment's processes beside what all rows have, as environment variables.
  let settings: [String: String]
  /// What it cannot run without.
  let needs: Set<Need>
  /// Whether it is short enough for every run of CI.
  let isQuick: Bool
  /// The topics that it has room in.
  let topics: FaultTopics
  /// How long every tenth send of the load lives; nil: as long as a send does that says nothing.
  let timeToLive: Duration?
  /// Looks at what has arrived, once everything is quiet.
  let inspect: (@Sendable (FaultDeployment, FaultLoad) async throws -> FaultFindings)?
  /// Injures, and heals; tells the deployment when it has healed, unless that is the last thing it does. Returns the
  /// pushes repeated by each injury where they can be told apart.
  let injure: @Sendable (FaultDeployment, _ isQuick: Bool) async throws -> [Int]

  init(
    _ name: String, isQuick: Bool = false, deadLetters: Int = 0, repeats: RepeatLimit = .none,
    mayStayUnconfirmed: Bool = false,
    settings: [String: String] = [:], needs: Set<Need> = [], topics: FaultTopics = .few,
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
    self.needs = needs
    self.timeToLive = timeToLive
    self.inspect = inspect
    self.injure = injure
  }
}

extension FaultScenario {
  /// Every row of the table; the broadcast reaches so many devices, and APNs is dead for so long.
  static func all(devices: Int, outage: Duration) -> [FaultScenario] {
    processes + kafka + services + trouble + [
      Isolation(outage: outage).scenario, KilledBroadcast(devices: devices).scenario,
      FaultScenario("poison records", isQuick: true, deadLetters: Poison.values.count) { deployment, _ in
        try await Poison.post(to: deployment)
        await deployment.noteHealed()
        // Among the good ones that come after it.
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
    KilledWorker.scenario,
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
    // What it had under way somebody else has done meanwhile.
    FaultScenario("a worker frozen past its session", repeats: .some) { deployment, _ in
      try await Task.sleep(for: .seconds(2))
      try await deployment.freeze("worker", 0)
      try await Task.sleep(for: .seconds(20))
      try await deployment.resume("worker", 0)
      await deployment.noteHealed()
      // It has to find out that it has lost its place.
      try await Task.sleep(for: .seconds(5))
      return []
    },
    // What had reached it is taken when it goes on, and by then was given up here.
    FaultScenario("the simulator frozen: no service answers", repeats: .some) { deployment, _ in
      try await deployment.freeze("simulator")
      try await Task.sleep(for: .seconds(15))
      try await deployment.resume("simulator")
      return []
    },
  ]

  private static let kafka = [
    // The group may miss its members for so long that the partitions get other owners, while nothing can be committed.
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
      // What is injected waits for the requests that it is for.
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
    // With the one push that is dropped go the answers to all that were under way on its connection, to some again and
    // again.
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

  /// The push service fails for that long.
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
