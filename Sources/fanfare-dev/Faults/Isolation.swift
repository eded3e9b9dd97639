import FanfareCore

/// One platform does not answer, and the others must not be affected.
///
/// The devices' arrivals are measured.
struct Isolation {
  /// The time to live of every tenth send, much less than the outage.
  private static let timeToLive = Duration.seconds(20)
  /// The tolerance between two readings of clocks on a busy machine.
  private static let tolerance = Duration.seconds(3)
  /// The growth of the working platforms' p99 allowed in a long outage.
  ///
  /// In a short one it depends on the machine's load.
  private static let longOutage = (length: Duration.seconds(600), mostGrowth: 1.5)

  /// The length of the outage.
  ///
  /// After a minute the circuit breaker is open, and all pushes of the platform go through the retry topics. A real
  /// outage may take ten minutes.
  let outage: Duration

  var scenario: FaultScenario {
    FaultScenario(
      "APNs dead for \(outage.components.seconds) seconds", topics: .many, timeToLive: Self.timeToLive, inspect: inspect
    ) { deployment, _ in
      try await Task.sleep(for: .seconds(20))
      await deployment.note()
      try await deployment.order(#"{"service":"apns","action":"silence"}"#)
      try await Task.sleep(for: outage)
      try await deployment.withdrawFaults()
      await deployment.note()
      await deployment.noteHealed()
      // Readmitted sends mix with new ones.
      try await Task.sleep(for: .seconds(10))
      return []
    }
  }

  private func inspect(_ deployment: FaultDeployment, _ load: FaultLoad) async throws -> FaultFindings {
    let moments = await deployment.moments
    guard moments.count == 2 else { throw BenchError("the outage has no beginning or no end") }
    let (dead, healed) = (moments[0], moments[1])
    let posts = load.posts
    var findings = FaultFindings()
    var words: [String] = []
    for platform in [Platform.fcm, .wns] {
      let arrivals = try await Self.firstArrivals(deployment, platform)
      func latency(_ isMeant: (FaultLoad.Post) -> Bool) -> Latency? {
        Latency(
          nanoseconds: posts.compactMap { number, post in
            guard isMeant(post), let arrival = arrivals[number] else { return nil }
            return (arrival.at - post.at).nanoseconds
          })
      }
      guard let before = latency({ $0.at < dead }), let during = latency({ $0.at >= dead && $0.at < healed }) else {
        throw BenchError("\(platform.name) has received nothing")
      }
      let ratio = (during.p99 / max(before.p99, 1) * 100).rounded() / 100
      words.append("\(platform.name) p99 \(Int(before.p99)) → \(Int(during.p99)) ms, × \(ratio)")
      if outage >= Self.longOutage.length, ratio > Self.longOutage.mostGrowth { findings.errors += 1 }
      findings.lost += posts.keys.count { FaultLoad.hasDevice(ofSend: $0, on: platform) && arrivals[$0] == nil }
    }
    let arrivals = try await Self.firstArrivals(deployment, .apns)
    for (number, post) in posts {
      switch (arrivals[number], post.timeToLive) {
      case (let arrival?, let timeToLive?):
        if arrival.at > post.answeredAt + timeToLive + Self.tolerance { findings.errors += 1 }
      case (nil, nil): findings.lost += 1
      // A send may expire only if its time to live overlaps the outage.
      case (nil, _?): if post.at + Self.tolerance < dead || post.at > healed { findings.errors += 1 }
      case (_?, nil): break
      }
    }
    let inversions = Self.inversions(
      of: arrivals.values.filter { arrival in
        arrival.at >= healed && posts[arrival.number].map { $0.at >= dead && $0.at < healed } == true
      }, canWait: { posts[$0]?.timeToLive == nil })
    findings.errors += inversions.pairs
    words.append("\(inversions.pairs) of \(inversions.all) waiting pushes arrived after a younger one of their device")
    findings.observed = words.joined(separator: "; ")
    return findings
  }

  /// The first arrival of each send, by number.
  private static func firstArrivals(_ deployment: FaultDeployment, _ platform: Platform) async throws -> [Int:
    PushArrival]
  {
    var first: [Int: PushArrival] = [:]
    for arrival in try await deployment.arrivals(on: platform)
    where first[arrival.number].map({ arrival.at < $0.at }) ?? true {
      first[arrival.number] = arrival
    }
    return first
  }

  /// Counts all arrivals, and those after a younger arrival on the same device.
  ///
  /// Only sends that can wait count, because a send that is about to expire goes first.
  private static func inversions(of arrivals: [PushArrival], canWait: (Int) -> Bool) -> (pairs: Int, all: Int) {
    var pairs = 0
    for (_, ofDevice) in Dictionary(grouping: arrivals, by: \.device) {
      var youngest = -1
      for arrival in ofDevice.sorted(by: { ($0.at, $0.number) < ($1.at, $1.number) }) {
        if arrival.number < youngest { pairs += 1 }
        if canWait(arrival.number) { youngest = max(youngest, arrival.number) }
      }
    }
    return (pairs, arrivals.count)
  }
}

extension Duration {
  fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
