import FanfareCore
import RDKafka
import Support

@testable import Worker

/// One worker, its retry pumps and their topics through an outage of APNs, in simulated time. Accepted sends go to
/// APNs and to FCM, deferred records come back through the topics, and the order of arrival is kept.
struct OutageSimulation {
  private static let step = Duration.milliseconds(100)
  private static let partitions = 4
  /// Records that one fetch brings of a partition.
  private static let fetch = 50

  /// Users, who have a device of each platform; the first gets every fourth send.
  let users: Int
  /// Sends accepted a second.
  let rate: Int
  /// Records that the worker takes a second at most.
  let speed: Int

  private(set) var desk: Desk
  /// The numbers of the sends that have come to each user's iPhone, in the order of their arrival.
  private var arrivals: [[Int]]
  private(set) var accepted = 0
  /// Readmitted records.
  private(set) var returned = 0

  private var isDead = false
  private var sends: [[UInt8]] = []
  private var read = 0
  private var credit = 0
  private var pumps: [Pump]
  private var seenPushes = 0
  private var seenRetries = 0
  private var numbers: [SendID: Int] = [:]
  private var unanswered: [(due: Int64, push: Push)] = []

  private struct Pump {
    let topic: String
    var state: PumpState
    var logs: [[[UInt8]]]
    var positions: [Int]
    var credit = 0
    var turn = 0
  }

  /// Begins with nothing in flight and APNs working. `records`: the most that the worker holds, and each pump.
  init(users: Int, rate: Int, speed: Int, records: Int) {
    (self.users, self.rate, self.speed) = (users, rate, speed)
    let delays = [2, 15, 60, 300]
    desk = Desk(retryDelays: delays) { $0.limits.maximumRecords = records }
    arrivals = Array(repeating: [], count: users)
    for user in 0..<users { desk.register("u\(user)", .apns, .fcm) }
    pumps = desk.retryTopics.map { retry in
      var policy = PumpPolicy(.whenDue(delay: retry.delay))
      policy.records = records
      return Pump(
        topic: retry.name, state: PumpState(policy),
        logs: Array(repeating: [], count: Self.partitions), positions: Array(repeating: 0, count: Self.partitions))
    }
    for index in pumps.indices {
      let assigned = (0..<Self.partitions).map { TopicPartition(topic: pumps[index].topic, partition: Int32($0)) }
      pumps[index].credit = pumps[index].state.advance(.event(.assigned(assigned, Rebalance {})), at: desk.now).credit
    }
  }

  /// How many sends have not come to their iPhone, but for those that need not.
  var missing: Int {
    let come = arrivals.map(Set.init)
    return (0..<accepted).count { !isShort($0) && !come[user(of: $0)].contains($0) }
  }

  /// How many have come after a younger one that could wait.
  var inversions: Int {
    arrivals.reduce(0) { sum, numbers in
      var youngest = -1
      var found = 0
      for number in numbers {
        if number < youngest { found += 1 }
        if !isShort(number) { youngest = max(youngest, number) }
      }
      return sum + found
    }
  }

  /// APNs answers no more.
  mutating func kill() { isDead = true }

  /// It answers again.
  mutating func heal() { isDead = false }

  /// Lets time pass, with or without sends being accepted.
  mutating func run(_ duration: Duration, isLoaded: Bool) throws {
    let end = desk.uptime + duration.milliseconds
    while desk.uptime < end {
      if isLoaded { accept() }
      bringBack()
      work()
      try collect()
    }
  }

  /// Whether a send lives for 20 seconds only, as every seventh does.
  private func isShort(_ number: Int) -> Bool { number % 7 == 3 }

  private func user(of number: Int) -> Int { number % 4 == 0 ? 0 : number % users }

  private mutating func accept() {
    for _ in 0..<max(1, rate / 10) {
      let send = desk.send(to: .user("u\(user(of: accepted))"), timeToLive: isShort(accepted) ? 20 : nil)
      numbers[send.id] = accepted
      sends.append(send.encoded())
      accepted += 1
    }
  }

  /// The pumps read their topics, in fetches of one partition after another, and release due records.
  private mutating func bringBack() {
    for index in pumps.indices {
      var steps: [PumpStep] = [.tick]
      var isDry = 0
      while pumps[index].credit > 0, isDry < Self.partitions {
        let partition = pumps[index].turn % Self.partitions
        pumps[index].turn += 1
        let position = pumps[index].positions[partition]
        let values = pumps[index].logs[partition][position...].prefix(min(Self.fetch, pumps[index].credit))
        isDry = values.isEmpty ? isDry + 1 : 0
        guard !values.isEmpty else { continue }
        pumps[index].credit -= values.count
        pumps[index].positions[partition] += values.count
        let records = values.enumerated().map { number, value in
          ConsumedRecord(
            topic: pumps[index].topic, partition: Int32(partition), offset: Int64(position + number),
            timestamp: desk.wall.milliseconds, key: nil, value: value[...])
        }
        steps.append(.event(.records(records)))
      }
      while !steps.isEmpty {
        let next = steps.removeFirst()
        let effects = pumps[index].state.advance(next, at: desk.now)
        pumps[index].credit += effects.credit
        guard !effects.due.isEmpty else { continue }
        returned += effects.due.count
        sends += effects.due.map(\.value)
        steps.append(.acknowledged(effects.due.map { ($0, nil) }))
      }
    }
  }

  private mutating func work() {
    let count = min(sends.count - read, min(desk.credit - credit, speed / 10))
    if count > 0 {
      desk.deliver(Array(sends[read..<read + count]))
      read += count
      credit += count
    }
    desk.advance(Self.step)
    while seenPushes < desk.pushes.count {
      let pushes = desk.pushes[seenPushes...]
      seenPushes = desk.pushes.count
      answer(pushes.filter { $0.handle.hasSuffix("-1") }, PushOutcome(.accepted, status: 200), from: 1)
      let phones = pushes.filter { $0.handle.hasSuffix("-0") }
      if isDead {
        unanswered += phones.map { (desk.uptime + 30_000, $0) }
      } else {
        for push in phones { arrive(push) }
        answer(phones, PushOutcome(.accepted, status: 200), from: 0)
      }
    }
    let late = unanswered.prefix { $0.due <= desk.uptime }
    answer(late.map(\.push), PushOutcome(.unknown, reason: "DeadlineExceeded"), from: 0)
    unanswered.removeFirst(late.count)
  }

  private mutating func answer(_ pushes: [Push], _ outcome: PushOutcome, from sender: Int) {
    guard !pushes.isEmpty else { return }
    let results = pushes.map { PushResult(ticket: $0.ticket, outcome: outcome) }
    desk.answer(results, from: sender)
  }

  private mutating func arrive(_ push: Push) {
    let body = String(decoding: push.rendering.body, as: UTF8.self)
    guard let id = SendID(body), let number = numbers[id] else { return }
    arrivals[user(of: number)].append(number)
  }

  /// Puts deferred records onto their topics.
  private mutating func collect() throws {
    for (topic, value) in desk.retries[seenRetries...] {
      guard let index = pumps.firstIndex(where: { $0.topic == topic }) else { continue }
      let retry = try RetryRecord.decode(value[...], recordTime: desk.wall)
      guard let number = numbers[retry.send.id] else { continue }
      pumps[index].logs[user(of: number) % Self.partitions].append(value)
    }
    seenRetries = desk.retries.count
  }
}
