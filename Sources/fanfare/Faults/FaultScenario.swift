import RDKafka

/// One way to injure a deployment while a load runs.
struct FaultScenario: Sendable {
  /// As the table and `--row` call it.
  let name: String
  /// How many records must be set aside, no more and no less.
  let deadLetters: Int
  /// Whether the ledger's file lies on a small file system of its own, which only root can make.
  let needsSmallDisk: Bool
  /// Whether it is short enough for every run of CI.
  let isQuick: Bool
  /// The topics that it has room in.
  let topics: FaultTopics
  /// How long every tenth send of the load lives; nil: as long as a send does that says nothing.
  let timeToLive: Duration?
  /// Looks at what has arrived, once everything is quiet.
  let inspect: (@Sendable (FaultDeployment, FaultLoad) async throws -> FaultFindings)?
  /// Injures, and heals. Returns the pushes repeated by each injury where they can be told apart.
  let injure: @Sendable (FaultDeployment, _ isQuick: Bool) async throws -> [Int]

  init(
    _ name: String, isQuick: Bool = false, deadLetters: Int = 0, needsSmallDisk: Bool = false,
    topics: FaultTopics = .few, timeToLive: Duration? = nil,
    inspect: (@Sendable (FaultDeployment, FaultLoad) async throws -> FaultFindings)? = nil,
    injure: @escaping @Sendable (FaultDeployment, _ isQuick: Bool) async throws -> [Int]
  ) {
    self.name = name
    self.isQuick = isQuick
    self.topics = topics
    self.deadLetters = deadLetters
    self.needsSmallDisk = needsSmallDisk
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
    FaultScenario("kill -9 of a worker, again and again", isQuick: true) { deployment, isQuick in
      var repeated: [Int] = []
      var before = try await deployment.arrivals().repeated
      for number in 0..<(isQuick ? 2 : 20) {
        try await Task.sleep(for: .milliseconds(Int64.random(in: 200...3000)))
        try await deployment.kill("worker", number % FaultDeployment.workers)
        try await deployment.start("worker", number % FaultDeployment.workers)
        // The embedded cluster takes so long to miss the dead one and to share out its partitions; then what it leaves is done again.
        try await Task.sleep(for: .seconds(12))
        let now = try await deployment.arrivals().repeated
        repeated.append(now - before)
        before = now
      }
      return repeated
    },
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
    FaultScenario("disk full for the ledger", needsSmallDisk: true) { deployment, _ in
      try await Task.sleep(for: .seconds(1))
      try deployment.ledgerDisk.fill()
      try await Task.sleep(for: .seconds(8))
      try deployment.ledgerDisk.free()
      return []
    },
    FaultScenario("a worker frozen past its session") { deployment, _ in
      try await Task.sleep(for: .seconds(2))
      try await deployment.freeze("worker", 0)
      try await Task.sleep(for: .seconds(20))
      try await deployment.resume("worker", 0)
      try await Task.sleep(for: .seconds(5))
      return []
    },
    FaultScenario("the simulator frozen: no service answers") { deployment, _ in
      try await deployment.freeze("simulator")
      try await Task.sleep(for: .seconds(15))
      try await deployment.resume("simulator")
      return []
    },
  ]

  private static let kafka = [
    FaultScenario("all brokers down for 30 s") { deployment, _ in
      try await Task.sleep(for: .seconds(2))
      try deployment.cluster.setBroker(isUp: false)
      try await Task.sleep(for: .seconds(30))
      try deployment.cluster.setBroker(isUp: true)
      return []
    },
    FaultScenario("broker connections cut", isQuick: true) { deployment, isQuick in
      for _ in 0..<(isQuick ? 2 : 5) {
        try await Task.sleep(for: .seconds(1))
        for request in [EmbeddedCluster.Request.produce, .fetch, .heartbeat] {
          try deployment.cluster.inject([.disconnect, .disconnect, .disconnect], into: request)
        }
      }
      try await Task.sleep(for: .seconds(3))
      return []
    },
    FaultScenario("produce errors") { deployment, _ in
      for _ in 0..<5 {
        try await Task.sleep(for: .seconds(1))
        try deployment.cluster.inject(
          [.notLeader, .requestTimedOut, .notEnoughReplicas, .notEnoughReplicasAfterAppend, .disconnect], into: .produce)
      }
      try await Task.sleep(for: .seconds(3))
      return []
    },
    FaultScenario("slow acknowledgements") { deployment, _ in
      try deployment.cluster.setRoundTripTime(.milliseconds(400))
      try await Task.sleep(for: .seconds(10))
      try deployment.cluster.setRoundTripTime(.zero)
      return []
    },
  ]

  private static let services = [
    service(
      "429 storm", #"{"service":"apns","action":"answer","status":429,"reason":"TooManyRequests","retryAfter":3}"#, seconds: 8),
    service("GOAWAY storm", #"{"service":"apns","action":"goaway","share":0.02}"#, seconds: 10),
    service("connections dropped by the service", #"{"service":"apns","action":"drop","share":0.02}"#, seconds: 10),
    service("one platform answers nothing", #"{"service":"apns","action":"silence"}"#, seconds: 40),
    service("one platform answers 503", #"{"service":"fcm","action":"answer","status":503}"#, seconds: 15),
    service(
      "credentials expired", #"{"service":"apns","action":"answer","status":403,"reason":"ExpiredProviderToken"}"#, seconds: 12),
  ]

  /// The push service fails for that long.
  private static func service(_ name: String, _ fault: String, seconds: Int) -> FaultScenario {
    FaultScenario(name, isQuick: name == "429 storm") { deployment, _ in
      try await deployment.order(fault)
      try await Task.sleep(for: .seconds(seconds))
      try await deployment.withdrawFaults()
      return []
    }
  }
}
