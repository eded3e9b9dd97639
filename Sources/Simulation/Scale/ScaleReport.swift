import FanfareCore
import Store
import Worker

/// The outcome of a run at scale, as the lines of a table.
package struct ScaleReport: Sendable {
  /// A line: a quantity, its value, and what it is measured against.
  package struct Line: Sendable, Equatable {
    package let name: String
    package let value: String
    package let note: String
  }

  /// A system and how much of it is used.
  package struct Use: Sendable {
    package let name: String
    /// The share of its capacity that is used on average, and at its busiest.
    package let mean: Double
    package let peak: Double
    /// How many there are, and how many do the same at `target`.
    package let count: Int
    package let needed: Int
  }

  /// The use at which a system still has room for the loss of a part and for bursts.
  package static let target = 0.6

  package let name: String
  package private(set) var lines: [Line] = []
  package private(set) var uses: [Use] = []
  package let digest: UInt64
  package let accepted: Int
  package let settled: Int
  package let delivered: Int
  package let repeated: Int
  /// Sends that wait anywhere.
  package let waiting: Int
  package let violations: [String]
  /// By platform, from acceptance to the service's answer.
  let latency: [Platform: LatencyHistogram]

  init(
    profile: ScaleProfile, flow: Flow, workers: [FlowWorker], group: FlowGroup, steps: Int, digest: UInt64,
    oldest: World.Time, mostLag: Int, mostDeferrals: Int, allBack: World.Time?, recovery: World.Time?,
    broadcast: (devices: Int, time: World.Time, isOver: Bool)?, deploy: (workers: Int, time: World.Time, isOver: Bool)?
  ) {
    name = profile.name
    self.digest = digest
    let counts = flow.counts
    accepted = counts.accepted
    settled = counts.settled
    delivered = flow.services.reduce(0) { $0 + $1.delivered }
    repeated = counts.repeated
    waiting = flow.lag + workers.reduce(0) { $0 + $1.waiting }
    latency = Dictionary(uniqueKeysWithValues: flow.services.map { ($0.platform, $0.latency) })
    violations =
      group.checkInvariants(partitions: profile.partitions)
      + (accepted + flow.lost == delivered + waiting
        ? [] : ["\(accepted) accepted and \(flow.lost) again, but \(delivered) delivered and \(waiting) waiting"])
    let seconds = Double(steps) * flow.seconds
    func rate(_ number: Double) -> String { Self.number(number / seconds) + "/s" }

    add("accepted", rate(Double(accepted)), "\(profile.frontEnds) front ends")
    add(
      "pushed", rate(Double(delivered)), "single sends, \(profile.workers) workers, \(profile.partitions) partitions")
    for service in flow.services {
      let times = [0.5, 0.99, 0.999].map { Self.time(service.latency.quantile($0)) }.joined(separator: " / ")
      add("\(service.platform), p50 / p99 / p99.9", times, "from acceptance to the service's answer")
    }
    add("most that waited in the log", Self.number(Double(mostLag)), "the oldest for \(Self.time(oldest))")
    if let recovery { add("recovered after", Self.time(recovery), "no send waits longer than a second") }
    if let broadcast {
      let rate = Double(broadcast.devices) / (Double(broadcast.time) / 1_000_000)
      add(
        "broadcast to \(Self.number(Double(broadcast.devices)))",
        broadcast.isOver ? Self.time(broadcast.time) : "not finished after \(Self.time(broadcast.time))",
        broadcast.isOver ? "\(Self.number(rate)) devices/s" : "\(Self.number(Double(counts.devices))) devices are done")
    }
    if let deploy {
      let all = deploy.time / World.Time(max(1, deploy.workers)) * World.Time(profile.workers)
      add(
        "\(deploy.workers) workers restarted", Self.time(deploy.time),
        deploy.isOver ? "all" : "all \(profile.workers): about \(Self.time(all))")
    }
    add("rebalances", "\(group.rebalances)", "the group was forming for \(Self.time(group.forming))")
    if flow.pauses.total > 0 {
      add(
        "partitions that changed hands", "\(flow.pauses.total)",
        "unread for \(Self.time(flow.pauses.quantile(0.5))), at most \(Self.time(flow.pauses.quantile(1)))")
    }
    add("repeated pushes", Self.number(Double(repeated)), "at most")
    if counts.deferred > 0 {
      add(
        "deferred", rate(Double(counts.deferred)),
        "at most \(Self.number(Double(mostDeferrals)))/s; \(rate(Double(counts.returned))) came back")
    }
    if let allBack, allBack > 0 {
      add("all deferred pushes are back", Self.time(allBack), "after the end of the outage")
    }
    for service in flow.services {
      guard let row = service.row else { continue }
      add(
        "reservations of \(service.platform)'s quota", rate(Double(row.reservations)),
        "the row is locked for \(Self.number(Double(row.locked) / seconds / 10_000)) % of the time")
      add(
        "quota of \(service.platform) used", rate(Double(service.delivered)),
        "of \(Self.number(Double(row.quota.perMinute) / 60))/s")
    }
    add("look-ups", rate(Double(counts.lookUps)), "in \(rate(Double(counts.lookUpRequests))) requests")
    add("batches to Kafka", rate(counts.batches), "\(rate(counts.bytes / 1_000_000)) MB")
    add("commits", rate(Double(counts.commits)), "\(counts.interim) while the group was forming")
    measure(profile, flow, workers, steps, seconds)
    let postgreSQL = PostgreSQLConfiguration(connection: "").maximumConnections
    add(
      "connections to the registry", Self.number(Double((profile.workers + profile.frontEnds) * postgreSQL)),
      "\(postgreSQL) of each worker and front end")
    for service in flow.services {
      add(
        "connections to \(service.platform)", Self.number(Double(profile.workers * service.connections)),
        "\(service.connections) of each worker")
    }
  }

  private mutating func measure(
    _ profile: ScaleProfile, _ flow: Flow, _ workers: [FlowWorker], _ steps: Int, _ seconds: Double
  ) {
    let count = Double(max(1, workers.count))
    // Where machines were lost, fewer than all of them were busy.
    func use(_ name: String, _ mean: Double, _ peak: Double, _ count: Int, busy: Double? = nil) {
      let needed = Int(clamping: ((busy ?? mean * Double(count)) / Self.target).rounded(.up))
      uses.append(Use(name: name, mean: mean, peak: peak, count: count, needed: needed))
    }
    let busy = workers.reduce(0) { $0 + $1.cpu.meanUtilization } / count
    use("workers: processors", busy, workers.map(\.cpu.peak).max() ?? 0, profile.workers)
    let limit = Double(profile.worker.limits.maximumRecords)
    let held = workers.reduce(0) { $0 + Double($1.heldSum) } / count / Double(max(1, steps))
    use("workers: records held", held / limit, Double(workers.map(\.mostHeld).max() ?? 0) / limit, profile.workers)
    for lane in flow.services.indices {
      let places = Double(workers.first?.lanes[lane].places ?? 1)
      let flying = workers.reduce(0) { $0 + Double($1.lanes[lane].flying) } / count / Double(max(1, steps))
      let most = Double(workers.map { $0.lanes[lane].mostFlying }.max() ?? 0)
      use("workers: places at \(flow.services[lane].platform)", flying / places, most / places, profile.workers)
    }
    use(
      "registry's databases", flow.registry.meanUtilization, flow.registry.peak, profile.registries,
      busy: flow.registry.meanMachines)
    use(
      "brokers", flow.kafka.meanUtilization, flow.kafka.peak, profile.brokers, busy: flow.kafka.meanMachines)
    let sends = Double(accepted) / seconds
    let frontEnds = sends * profile.costs.accept / 1_000_000 / Double(profile.frontEnds * profile.cores)
    use("front ends", frontEnds, frontEnds, profile.frontEnds)
    let ledgers = sends * profile.costs.ledger / 1_000_000 / Double(profile.cores * profile.ledgers)
    use("ledgers", ledgers, ledgers, profile.ledgers)
    let database =
      sends * profile.costs.ledgerDatabase / 1_000_000 / Double(profile.databaseCores * profile.ledgerDatabases)
    use("ledger's databases", database, database, profile.ledgerDatabases)
  }

  private mutating func add(_ name: String, _ value: String, _ note: String) {
    lines.append(Line(name: name, value: value, note: note))
  }

  /// The system that is used most.
  package var busiest: Use? { uses.max { $0.peak < $1.peak } }

  /// A number with three significant digits.
  static func number(_ number: Double) -> String {
    let units: [(Double, String)] = [(1e9, " G"), (1e6, " M"), (1e3, " k")]
    for (unit, name) in units where number >= unit { return digits(number / unit) + name }
    return digits(number)
  }

  /// A time in microseconds.
  static func time(_ time: World.Time) -> String {
    switch time {
    case ..<1_000: "\(time) µs"
    case ..<1_000_000: digits(Double(time) / 1_000) + " ms"
    case ..<600_000_000: digits(Double(time) / 1_000_000) + " s"
    default: digits(Double(time) / 60_000_000) + " min"
    }
  }

  private static func digits(_ number: Double) -> String {
    if number >= 100 || number == number.rounded() { return "\(Int(clamping: number.rounded()))" }
    let scale = number >= 10 ? 10.0 : 100.0
    return "\((number * scale).rounded() / scale)"
  }
}
