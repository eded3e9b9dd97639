/// One worker after the other is killed, each in full swing, and replaced.
enum KilledWorker {
  /// The most pushes that a worker has handed over and that are not answered, and so the most that its death may
  /// repeat: the records that it may hold leave room for what settles between two commits. A worker makes about 1,000
  /// from one kill to the next.
  private static let maximumPushes = 200
  /// Nearly all sends go to two devices here, and none to more than three.
  private static let maximumRecords = 60

  /// The row.
  static let scenario = FaultScenario(
    "kill -9 of a worker, again and again", isQuick: true, repeats: .each(most: maximumPushes),
    settings: [
      "FANFARE_WORKER_MAXIMUM_PUSHES": "\(maximumPushes)", "FANFARE_WORKER_MAXIMUM_RECORDS": "\(maximumRecords)",
    ]
  ) { deployment, isQuick in
    var repeated: [Int] = []
    var before = try await deployment.arrivals().repeated
    for number in 0..<(isQuick ? 3 : 20) {
      try await Task.sleep(for: .milliseconds(Int64.random(in: 200...3000)))
      let worker = number % FaultDeployment.workers
      try await deployment.kill("worker", worker)
      try await deployment.start("worker", worker)
      await deployment.noteHealed()
      // The embedded cluster takes more than ten seconds to miss the dead one and to share out its partitions, and lets
      // nobody commit meanwhile: a kill before that is over would repeat everything since.
      try await deployment.ready("worker", worker)
      try await deployment.waitForCommits()
      let now = try await deployment.arrivals().repeated
      repeated.append(now - before)
      before = now
    }
    return repeated
  }
}
