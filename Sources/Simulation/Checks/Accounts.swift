package import FanfareCore
import RDKafka

/// The true history of a deployment's sends, kept beside it, and the checks of the promises.
///
/// `@unchecked Sendable`: see `World`.
package final class Accounts: @unchecked Sendable {
  /// A promise that was broken.
  package struct Violation: Hashable, Sendable, CustomStringConvertible {
    /// Microseconds since the world began.
    package let time: Int64
    package let text: String
    package var description: String { "\(Double(time) / 1_000_000) s: \(text)" }
  }

  /// The history of one send.
  private struct Account {
    let send: SendRequest
    /// Whether its caller has been told that it is accepted.
    var isAccepted = false
    /// The parts of each dispatch that have a status record.
    var parts: [DispatchID?: Set<Int>] = [:]
    var isConcluded: Bool { concludedAt != nil }
    /// Whether a worker has written anything about it.
    var hasOutput = false
    /// When it was posted, and when it had its end, in microseconds since the world began.
    var postedAt: World.Time = 0
    var concludedAt: World.Time?
    /// Whether a part of it was deferred or came back after its end: others may have taken over the send in the
    /// meantime.
    var mayReturn = false
    /// When parts of it were deferred, and by which processes: if one dies before a commit, another one dispatches the
    /// send beside the deferred part. From the first on younger sends wait for it only while one worker owns both.
    var deferrals: [(at: World.Time, by: String)] = []
    /// When it last got a status record, and from which process: a dispatch that repeats it has one of its own.
    var status: (at: World.Time, by: String)?
    /// Whether a log has lost a record of it, so that it need not end.
    var isExcused = false
    /// Its place in the log, once it has one.
    var place: Int64?
  }

  /// A further check of each push that is handed over: returns how it breaks a promise.
  package typealias Check = (_ push: PushID, _ send: SendID, _ process: String) -> String?

  private let world: World
  private let topics: Topics
  var check: Check?
  private var accounts: [SendID: Account] = [:]
  /// The sends that the records of each partition carry, by offset; nil: no whole send.
  private var carried: [TopicPartition: [SendID?]] = [:]
  /// The position of each partition when all whole sends in it are settled.
  private var due: [TopicPartition: Int64] = [:]
  /// The deferred parts that have come back.
  private var returns = Returns()
  /// From when on all groups of retry topics take a commit that becomes due at a moment.
  var retriesTakeCommits: (World.Time) -> World.Time = { $0 }
  private var pushes: [PushID: Int] = [:]
  /// The pushes that a service has accepted after their expiry.
  private var lapsed: Set<PushID> = []
  /// The process that has last handed a push over, and when.
  private var handOvers: [PushID: (process: String, at: World.Time)] = [:]
  /// By handle and user: the place in the log of the latest send whose push was first handed over.
  private var latest: [String: Int64] = [:]
  private var troubles = Troubles()
  /// Whether first attempts are in the order of the log: not while a push service is in trouble.
  private let keepsOrder: Bool
  /// The longest time from post to end, in microseconds.
  private(set) var slowest: World.Time = 0
  /// The same, of sends to single users after the group has formed.
  private(set) var slowestSingle: World.Time = 0
  /// The partitions that have lost records, and where those ended that have lost their end.
  private var losses: (partitions: Set<TopicPartition>, ends: [TopicPartition: Int64]) = ([], [:])
  /// Repeated pushes of sends of which nothing was deferred.
  private var unexcused = 0
  private(set) var violations: [Violation] = []
  /// Further checks, if logs lose no records.
  var results: Results?
  var pages: FinishedPages?
  private(set) var counts = Counts()
  /// From the post of a send to the answer to each of its pushes.
  private(set) var latency = LatencyHistogram()

  package struct Counts: Sendable {
    package var accepted = 0
    /// Sends in the log, and those of them that have come to their end: accepted or not.
    package var inLog = 0
    package var ended = 0
    package var concluded = 0
    package var pushes = 0
    package var repeated = 0
    package var deferred = 0
    package var deadLettered = 0
    package var commits = 0
    /// How often a promise was checked.
    package var checks = 0
  }

  /// How long a send to one user takes at most without faults, whatever broadcasts are in progress.
  static let singlePatience: World.Time = .milliseconds(500)
  /// When a group that has formed with the world has its partitions.
  static let beginning: World.Time = .seconds(10)

  init(in world: World, topics: Topics, keepsOrder: Bool) {
    self.world = world
    self.topics = topics
    self.keepsOrder = keepsOrder
  }

  /// Whether every send that was posted since then has come to its end.
  func isSettled(since start: World.Time) -> Bool {
    isSettled && accounts.values.allSatisfy { $0.postedAt < start || $0.isConcluded }
  }

  /// Whether every accepted send has come to its end.
  var isSettled: Bool { counts.concluded >= counts.accepted }

  /// The pushes that services have accepted, each counted once: those that have arrived, and those that expired on the
  /// way.
  var devicesReached: Int { pushes.count + lapsed.count { pushes[$0] == nil } }

  func violate(_ text: String) {
    world.note(.violation(text))
    // The first ones tell most.
    if violations.count < 20 { violations.append(Violation(time: world.now, text: text)) }
  }

  // Sends.

  /// A caller has posted the send, or scheduled it for later.
  func post(_ send: SendRequest, after delay: World.Time = 0) {
    world.note(.posted(send.id, to: send.audience))
    accounts[send.id] = Account(send: send, postedAt: world.now + delay)
    results?.posted(send)
  }

  /// The caller or a scheduler posts the send again. Another worker may have taken over since.
  func repeated(_ id: SendID) { accounts[id]?.mayReturn = true }

  /// The caller has been told that the send is accepted.
  func accept(_ id: SendID) {
    guard accounts[id]?.isAccepted == false else { return }
    world.note(.accepted(id))
    accounts[id]?.isAccepted = true
    counts.accepted += 1
    if accounts[id]?.isConcluded == true || accounts[id]?.isExcused == true { counts.concluded += 1 }
  }

  // What happens.

  /// A record is in the log.
  func appended(_ partition: TopicPartition, _ offset: Int64, _ record: SimulatedCluster.Stored) {
    switch partition.topic {
    case topics.sends: carry(partition, offset, record)
    case topics.status: takeStatus(record)
    case topics.deadLetter:
      counts.deadLettered += 1
      do {
        let letter = try DeadLetter.decode(record.value[...])
        // A letter need not carry a send.
        if let send = try? SendRequest.decode(letter.value[...], recordTime: world.wall) { note(send.id) }
        violate("dead-lettered: \(letter.reason) \(letter.detail)")
      } catch {
        violate("unreadable dead letter: \(error)")
      }
    case topics.segments:
      do {
        let send = try SegmentRecord.decode(record.value[...], recordTime: world.wall).send.id
        note(send)
        world.note(.divided(partition, offset, send))
      } catch {
        violate("unreadable segment: \(error)")
      }
    default:
      guard topics.retries.contains(where: { $0.name == partition.topic }) else { return }
      counts.deferred += 1
      do {
        let retry = try RetryRecord.decode(record.value[...], recordTime: world.wall, now: world.wall)
        let send = retry.send.id
        returns.expect(retry.identity)
        note(send)
        world.note(.deferred(partition, offset, send))
        pages?.deferred(retry.part, of: send)
        noteReturn(send)
        accounts[send]?.deferrals.append((world.now, record.writer))
      } catch {
        violate("unreadable retry record: \(error)")
      }
    }
  }

  /// A part of the send is deferred or comes back: after its end, by a process that did not know yet that others had
  /// taken over.
  private func noteReturn(_ id: SendID) {
    if accounts[id]?.isConcluded == true { accounts[id]?.mayReturn = true }
  }

  /// A pump has copied a deferred part back. It may do so again, or its successor may, only when its commit has failed.
  private func takeReturn(_ retry: RetryRecord, by process: String) {
    counts.checks += 1
    guard let former = returns.returned(retry.identity, by: Returns.Copy(process: process, time: world.now)) else {
      return
    }
    accounts[retry.send.id]?.mayReturn = true
    let mayRepeat =
      isTroubled(process)
      || former.contains { copy in
        // The commit is due within a second, and no group takes it while it forms.
        let committed = max(retriesTakeCommits(copy.time), retriesTakeCommits(copy.time + .seconds(1)))
        // A pump that is told to end waits for its group only for a moment.
        return isTroubled(copy.process, between: copy.time, and: committed)
          || troubles.hasEnded(copy.process, by: committed)
      }
    if !mayRepeat { violate("a deferred part of \(retry.send.id) is copied back twice") }
  }

  /// Kafka has not acknowledged a record, which may be in the log: its producer may repeat it.
  func doubted(_ partition: TopicPartition, _ record: SimulatedCluster.Stored) {
    guard partition.topic == topics.sends else { return }
    if let retry = try? RetryRecord.decode(record.value[...], recordTime: world.wall, now: world.wall) {
      // Most are whole sends.
      returns.expect(retry.identity)
    }
  }

  private func note(_ id: SendID) { accounts[id]?.hasOutput = true }

  private func carry(_ partition: TopicPartition, _ offset: Int64, _ record: SimulatedCluster.Stored) {
    var id: SendID?
    // Offsets can be missing in a log.
    while carried[partition]?.count ?? 0 < offset { carried[partition, default: []].append(nil) }
    // Deferred parts come back through the topic. A record that is none of them is a whole send.
    if let retry = try? RetryRecord.decode(record.value[...], recordTime: world.wall, now: world.wall) {
      world.note(.returned(partition, offset, retry.send.id))
      noteReturn(retry.send.id)
      takeReturn(retry, by: record.writer)
    } else {
      do { id = try SendRequest.decode(record.value[...], recordTime: world.wall).id } catch {
        violate("unreadable send: \(error)")
      }
    }
    if let id { world.note(.carried(partition, offset, id)) }
    if let id, let account = accounts[id], account.place == nil {
      accounts[id]?.place = Int64(carried[partition]?.count ?? 0)
      counts.inLog += 1
    }
    carried[partition, default: []].append(id)
    if id != nil { due[partition] = offset + 1 }
    if offset < losses.ends[partition] ?? 0, let id { excuse(id) }
  }

  private func takeStatus(_ record: SimulatedCluster.Stored) {
    do {
      let status = try StatusRecord.decode(record.value[...])
      guard var account = accounts[status.send] else { return violate("a status of an unknown send") }
      account.hasOutput = true
      account.status = (world.now, record.writer)
      account.parts[status.attempt, default: []].formUnion(status.part..<status.part + status.span)
      let isEnd = !account.isConcluded && account.parts[status.attempt]?.count == status.parts
      pages?.noted(
        status.part..<status.part + status.span, of: status.send, mayRepeat: isTroubled(record.writer))
      results?.noted(status, isEnd: isEnd, isUndisturbed: troubles.last < account.postedAt)
      if isEnd {
        account.concludedAt = world.now
        counts.ended += 1
        slowest = max(slowest, world.now - account.postedAt)
        if !account.send.isBroadcast, account.postedAt > Self.beginning {
          slowestSingle = max(slowestSingle, world.now - account.postedAt)
        }
        world.note(.ended(status.send, "\(status.state)"))
        if account.isAccepted, !account.isExcused { counts.concluded += 1 }
      }
      accounts[status.send] = account
    } catch {
      violate("unreadable status: \(error)")
    }
  }

  // Losses.

  /// A log has lost records: its end, in an unclean election, or its oldest ones.
  ///
  /// Sends of which a record is lost need not end. Where the end was lost, others come to stand at offsets that were
  /// read before: the product does not notice if its position is reached again before it reads, so those are excused,
  /// too. And a client that notices may read the whole log once more.
  func lost(_ partition: TopicPartition, _ entries: [SimulatedLog.Entry], isEnd: Bool) {
    losses.partitions.insert(partition)
    for entry in entries { if let id = send(of: entry.record, in: partition.topic) { excuse(id) } }
    guard isEnd, let first = entries.first, let last = entries.last else { return }
    losses.ends[partition] = max(losses.ends[partition] ?? 0, last.offset + 1)
    if partition.topic == topics.sends {
      carried[partition]?.removeSubrange(Int(first.offset)...)
      for case let id? in carried[partition] ?? [] { accounts[id]?.mayReturn = true }
    } else {
      for id in accounts.keys { accounts[id]?.mayReturn = true }
    }
  }

  private func excuse(_ id: SendID) {
    guard let account = accounts[id], !account.isExcused else { return }
    accounts[id]?.isExcused = true
    accounts[id]?.mayReturn = true
    if account.isAccepted, !account.isConcluded { counts.concluded += 1 }
  }

  /// The send that a record is about.
  private func send(of record: SimulatedCluster.Stored, in topic: String) -> SendID? {
    let value = record.value[...]
    do {
      if topic == topics.segments { return try SegmentRecord.decode(value, recordTime: world.wall).send.id }
      if topic == topics.status { return try StatusRecord.decode(value).send }
      guard topic == topics.sends || topics.retries.contains(where: { $0.name == topic }) else { return nil }
      do { return try RetryRecord.decode(value, recordTime: world.wall, now: world.wall).send.id } catch {
        // A whole send.
        return try SendRequest.decode(value, recordTime: world.wall).id
      }
    } catch {
      violate("unreadable record: \(error)")
      return nil
    }
  }

  /// A group has taken a position: everything before it must have been worked on.
  func committed(_ group: String, _ position: PartitionOffset, _ former: PartitionOffset?) {
    counts.commits += 1
    world.note(.committed(group, position))
    guard position.partition.topic == topics.sends, let carried = carried[position.partition] else { return }
    let start = former?.offset ?? 0
    if position.offset < start {
      return world.trace.note(world.now, "\(position.partition) goes back from \(start) to \(position.offset)")
    }
    guard position.offset <= carried.count else {
      // A position from before the log has lost its end.
      if losses.ends[position.partition] ?? 0 >= position.offset { return }
      return violate("\(position.partition) is committed beyond its end")
    }
    for offset in start..<position.offset {
      counts.checks += 1
      if let id = carried[Int(offset)], let account = accounts[id], !account.hasOutput, !account.isExcused {
        violate("\(position.partition) is committed to \(position.offset), but \(offset) (\(id)) has left nothing")
      }
    }
  }

  /// A process is told to end.
  func ends(_ process: String) { troubles.end(process, at: world.now) }

  /// A process is in trouble for a while: others may repeat what it did shortly before, and since.
  func troubled(_ process: String, for time: World.Time = 0) { troubles.begin(process, at: world.now, for: time) }

  private func isTroubled(_ process: String) -> Bool { troubles.hold(process, at: world.now) }

  /// Whether the process is in trouble at that moment, or before a commit would follow.
  private func isTroubled(_ process: String, since moment: World.Time) -> Bool {
    troubles.hold(process, between: moment, and: moment)
  }

  /// Whether the process is in trouble between two moments, or before a commit would follow.
  func isTroubled(_ process: String, between start: World.Time, and end: World.Time) -> Bool {
    troubles.hold(process, between: start, and: end)
  }

  /// The send of a push, whose payload is the send's id.
  func send(of push: Push) -> SendRequest? {
    SendID(String(decoding: push.rendering.body, as: UTF8.self)).flatMap { accounts[$0]?.send }
  }

  /// A worker hands a push over.
  func handedOver(_ push: Push, by process: String, at now: UnixTime) {
    counts.checks += 1
    guard let send = SendID(String(decoding: push.rendering.body, as: UTF8.self)), let account = accounts[send] else {
      return violate("a push of an unknown send")
    }
    world.note(.pushed(push.id, of: send, by: process))
    if let problem = check?(push.id, send, process) { violate(problem) }
    if push.expiresAt <= now { violate("\(push.id) of \(send) is handed over by \(process) after its expiry") }
    let former = handOvers.updateValue((process, world.now), forKey: push.id)
    // A retry pump that takes over a partition copies again what had settled above its position.
    let mayComeTwice = account.deferrals.first.map { $0.at <= troubles.last } ?? false
    if !mayComeTwice, results?.isKnown(push, to: process, at: { !troubles.hold(process, after: $0) }) == true {
      violate("\(push.id) of \(send) is pushed again by \(process), which knows that it is delivered")
    }
    results?.handedOver(push.id)
    if push.isBroadcast, !isTroubled(process) { pages?.handedOver(push, of: account.send, by: process) }
    if let former {
      // A send is covered by a commit soon after its end, unless those who pushed and ended it are in trouble then. A
      // process in trouble may not know yet that another one has taken over.
      if !account.mayReturn, !isTroubled(process), account.isConcluded, let end = account.status, end.at >= former.at,
        end.at + Troubles.commitPatience < world.now,
        // A page ends before its broadcast.
        !isTroubled(former.process, between: push.isBroadcast ? former.at : end.at, and: end.at),
        !isTroubled(end.by, since: end.at),
        !account.deferrals.contains(where: { isTroubled($0.by, since: $0.at) })
      {
        violate("\(push.id) of \(send) is pushed again by \(process), long after its end")
      }
    } else if keepsOrder, !push.isBroadcast, account.deferrals.isEmpty, !account.isConcluded, let place = account.place
    {
      let device = "\(push.handle) of \(account.send.audience.text)"
      if place < latest[device] ?? -1 { violate("\(push.id) of \(send) is pushed after a later send") }
      latest[device] = place
    }
  }

  /// A push service has answered a push.
  func timed(_ push: Push) {
    guard let send = SendID(String(decoding: push.rendering.body, as: UTF8.self)), let account = accounts[send] else {
      return
    }
    latency.add(world.now - account.postedAt)
  }

  /// A process has the answer to a push.
  func answered(_ push: Push, _ outcome: PushOutcome, to process: String) {
    guard let send = send(of: push) else { return }
    results?.answered(push, outcome, to: process, of: send.id)
  }

  /// A push service has taken a push.
  func delivered(_ push: Push, by service: String) {
    counts.pushes += 1
    world.note(.delivered(push.id, by: service))
    let times = pushes[push.id, default: 0] + 1
    pushes[push.id] = times
    guard times > 1 else { return }
    counts.repeated += 1
    if send(of: push).flatMap({ accounts[$0.id]?.deferrals.first }) == nil { unexcused += 1 }
  }

  /// A push service has accepted a push that had expired on its way.
  func lapsed(_ push: Push) { lapsed.insert(push.id) }

  /// The violations of its invariants that a component reports.
  func audited(_ process: String, _ found: [String]) {
    counts.checks += 1
    for text in found { violate("\(process): \(text)") }
  }

  /// Whether the position of every partition is beyond its last whole send. A deferred part can still come back.
  func hasPositions(_ position: (TopicPartition) -> Int64) -> Bool {
    due.allSatisfy { position($0) >= $1 || losses.partitions.contains($0) }
  }

  /// When everything has settled, and again after all workers have ended in order: everything is committed.
  func checkPositions(_ position: (TopicPartition) -> Int64) {
    for (partition, due) in due.sorted(by: { $0.key.partition < $1.key.partition }) {
      counts.checks += 1
      let position = position(partition)
      if position < due, !losses.partitions.contains(partition) {
        violate("the sends of \(partition) end at \(due), and its position is \(position)")
      }
    }
  }

  /// At the end, long after the last fault: nothing waits any more.
  func finish(mayRepeat: Bool, longest: Duration?) {
    if let longest, slowest > World.Time(longest) { violate("a send has taken \(slowest / 1000) ms") }
    if longest != nil, slowestSingle > Self.singlePatience {
      violate("a send to one user has taken \(slowestSingle / 1000) ms")
    }
    for (id, account) in accounts.sorted(by: { $0.key < $1.key })
    where account.isAccepted && !account.isConcluded && !account.isExcused {
      violate("send \(id) of \(account.send.acceptedAt) is accepted and has no end")
    }
    if !mayRepeat, unexcused > 0 { violate("\(unexcused) pushes are repeated without a fault") }
  }
}
