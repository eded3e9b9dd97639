import FanfareCore
import Ledger
import Registry

/// A broadcast whose workers are all killed three times while it runs.
struct KilledBroadcast {
  private static let kills = 3

  /// The number of devices.
  let devices: Int

  var scenario: FaultScenario {
    // The broadcast's repeats are checked in `inspect`.
    FaultScenario(
      "kill -9 of every worker, three times during a broadcast", repeats: .some, inspect: inspect
    ) { deployment, _ in
      try await population.register(in: try await deployment.openRegistry())
      // Slow enough to run during each kill: 25 seconds without kills.
      let body = #"{"to":{"tag":"crowd"},"message":{"body":"Goal"},"maxPerSecond":\#(devices / 25)}"#
      _ = try await deployment.post(broadcast: body)
      try await Task.sleep(for: .seconds(3))
      for number in 0..<Self.kills {
        for worker in 0..<FaultDeployment.workers { try await deployment.kill("worker", worker) }
        for worker in 0..<FaultDeployment.workers { try await deployment.start("worker", worker) }
        await deployment.noteHealed()
        // The group must notice the dead workers first.
        try await Task.sleep(for: number == Self.kills - 1 ? .seconds(1) : deployment.sessionPatience)
      }
      return []
    }
  }

  /// The broadcast's audience.
  ///
  /// It has no users of the load, because the load's devices are counted separately.
  private var population: Population {
    let iPhones = Population.iPhones(devices, tags: [("crowd", 0..<devices)]).devices
    return Population(
      devices: iPhones.map { device in
        var device = device
        device.owner += FaultDeployment.users
        return device
      })
  }

  /// The counts must be exact, and only pushes in flight may be repeated.
  private func inspect(_ deployment: FaultDeployment, _ load: FaultLoad) async throws -> FaultFindings {
    var findings = FaultFindings()
    guard let send = await deployment.broadcast,
      let report = try await deployment.history.report(of: send, hub: .default)
    else {
      findings.lost = devices
      return findings
    }
    let delivered = report.counts[.apns]?[.delivered] ?? 0
    findings.errors = abs(delivered - devices) + (report.state == .settled ? 0 : 1)
    let bound = Self.kills * FaultDeployment.workers * FaultDeployment.pageDevices
    let repeated = try await deployment.arrivals().repeated - repeatsOfLoad(deployment)
    if repeated > bound { findings.errors += 1 }
    findings.observed =
      "broadcast: \(delivered) of \(devices) delivered, \(repeated) repeated; "
      + "at most \(FaultDeployment.pageDevices) for each worker and kill, \(bound) in total"
    return findings
  }

  /// The number of repeats of the load's sends.
  private func repeatsOfLoad(_ deployment: FaultDeployment) async throws -> Int {
    let iPhones = (0..<FaultDeployment.users).map(FaultLoad.iPhone(of:))
    let arrivals = try await deployment.arrivals(on: .apns, at: iPhones) + deployment.arrivals(on: .fcm)
    let all = arrivals + (try await deployment.arrivals(on: .wns))
    return all.count - Set(all.map { "\($0.device) \($0.number)" }).count
  }
}

/// Kills workers under load, and replaces them.
enum KilledWorker {
  /// The most pushes in flight of a worker, and so the most that its death may repeat.
  ///
  /// The limit on records leaves room for records that settle between two commits. A worker makes about 1,000 pushes
  /// between two kills.
  static let maximumPushes = 200
  /// Nearly all sends have two devices here, and none more than three.
  private static let maximumRecords = 60
  static let settings = [
    "FANFARE_WORKER_MAXIMUM_PUSHES": "\(maximumPushes)", "FANFARE_WORKER_MAXIMUM_RECORDS": "\(maximumRecords)",
  ]

  /// One after the other.
  static let scenario = FaultScenario(
    "kill -9 of a worker, again and again", isQuick: true, repeats: .each(most: maximumPushes), settings: settings
  ) { deployment, isQuick in
    var repeated: [Int] = []
    var before = try await deployment.arrivals().repeated
    for number in 0..<(isQuick ? 3 : 20) {
      try await Task.sleep(for: .milliseconds(Int64.random(in: 200...3000)))
      let worker = number % FaultDeployment.workers
      try await deployment.kill("worker", worker)
      try await deployment.start("worker", worker)
      await deployment.noteHealed()
      // The group takes more than ten seconds to notice the dead worker and to reassign its partitions.
      try await deployment.ready("worker", worker)
      try await deployment.waitForCommits()
      let now = try await deployment.arrivals().repeated
      repeated.append(now - before)
      before = now
    }
    return repeated
  }

  /// Two within one session time. The first one's successor wants to join, and until the dead member's session has run
  /// out nothing can be committed to the group; the second one dies in the middle of that time.
  static let pair = FaultScenario(
    "two workers killed within one session time", isQuick: true, repeats: .each(most: maximumPushes),
    settings: settings
  ) { deployment, isQuick in
    var repeated: [Int] = []
    for number in 0..<(isQuick ? 1 : 5) {
      let (first, second) = (number % FaultDeployment.workers, (number + 1) % FaultDeployment.workers)
      let before = try await deployment.arrivals().repeated
      try await deployment.kill("worker", first)
      try await deployment.start("worker", first)
      try await Task.sleep(for: .milliseconds(Int64.random(in: 3000...4500)))
      try await deployment.kill("worker", second)
      try await deployment.start("worker", second)
      await deployment.noteHealed()
      try await deployment.ready("worker", first)
      try await deployment.ready("worker", second)
      try await deployment.waitForCommits()
      repeated.append(try await deployment.arrivals().repeated - before)
    }
    return repeated
  }
}
