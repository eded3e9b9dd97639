import FanfareCore

/// One platform dead while the others must not notice: what arrives when, at the devices themselves.
struct Isolation {
  /// How long every tenth send lives; much less than the platform is dead.
  private static let timeToLive = Duration.seconds(20)
  /// Between two clocks' readings of one moment on a busy machine.
  private static let tolerance = Duration.seconds(3)
  /// How many times the p99 of the platforms that work may grow in a long outage. That of a short one goes by how busy
  /// the machine happens to be.
  private static let longOutage = (length: Duration.seconds(600), mostGrowth: 1.5)

  /// How long it is dead. After a minute the circuit is open, and everything goes around by the retry topics; ten are
  /// what a real outage may take.
  let outage: Duration

  /// The row.
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
      // What comes back meets what is new.
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
        throw BenchError("\(platform.rawValue) has received nothing")
      }
      let ratio = (during.p99 / max(before.p99, 1) * 100).rounded() / 100
      words.append("\(platform.rawValue) p99 \(Int(before.p99)) → \(Int(during.p99)) ms, × \(ratio)")
      if outage >= Self.longOutage.length, ratio > Self.longOutage.mostGrowth { findings.errors += 1 }
      findings.lost += posts.keys.count { FaultLoad.hasDevice(ofSend: $0, on: platform) && arrivals[$0] == nil }
    }
    let arrivals = try await Self.firstArrivals(deployment, .apns)
    for (number, post) in posts {
      switch (arrivals[number], post.timeToLive) {
      case (let arrival?, let timeToLive?):
        if arrival.at > post.answeredAt + timeToLive + Self.tolerance { findings.errors += 1 }
      case (nil, nil): findings.lost += 1
      // What had its whole life while the platform worked did not have to expire.
      case (nil, _?): if post.at + Self.tolerance < dead || post.at > healed { findings.errors += 1 }
      case (_?, nil): break
      }
    }
    let inversions = Self.inversions(
      of: arrivals.values.filter { arrival in
        arrival.at >= healed && posts[arrival.number].map { $0.at >= dead && $0.at < healed } == true
      }, canWait: { posts[$0]?.timeToLive == nil })
    findings.errors += inversions.pairs
    words.append("\(inversions.pairs) of \(inversions.all) waiting pushes after a younger one of their device")
    findings.observed = words.joined(separator: "; ")
    return findings
  }

  /// The first arrival of each send, by its number.
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

  /// How many have come after a younger one of the same device that could wait, of how many: one that would have
  /// expired goes first.
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
  /// In whole nanoseconds.
  fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
