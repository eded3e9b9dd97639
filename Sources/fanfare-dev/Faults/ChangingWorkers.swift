/// Workers that leave, join, die and return, one after another: after each change, all workers share the sends and the
/// segments of broadcasts evenly.
enum ChangingWorkers {
  static let scenario = FaultScenario(
    "workers that leave, join, die and return", isQuick: true, repeats: .each(most: KilledWorker.maximumPushes),
    settings: KilledWorker.settings
  ) { deployment, isQuick in
    var running = Array(0..<FaultDeployment.workers)
    func share(_ change: String) async throws {
      let shares = try await deployment.waitForEvenShares(among: running)
      await deployment.note("\(shares.map(String.init).joined(separator: "+")) partitions \(change)")
    }
    try await share("of all")
    for _ in 0..<(isQuick ? 1 : 2) {
      try await deployment.terminate("worker", running.removeLast())
      try await share("after one left")
    }
    while running.count < FaultDeployment.workers {
      try await deployment.start("worker", running.count)
      try await deployment.ready("worker", running.count)
      running.append(running.count)
      try await share("after one joined")
    }
    try await deployment.waitForCommits()
    let before = try await deployment.arrivals().repeated
    try await deployment.kill("worker", 0)
    running.removeFirst()
    try await share("after one died")
    try await deployment.start("worker", 0)
    try await deployment.ready("worker", 0)
    running.insert(0, at: 0)
    try await share("after it returned")
    await deployment.noteHealed()
    return [try await deployment.arrivals().repeated - before]
  }
}
