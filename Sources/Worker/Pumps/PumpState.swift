import FanfareCore
import RDKafka

/// An event of the pump.
enum PumpStep: Sendable {
  case event(ConsumerEvent)
  /// Kafka's answer to each copy, nil if it is durable, and the first error.
  case acknowledged([(held: HeldRecord, error: RDKafkaError?)])
  case recovered(OffsetAnswer)
  case committed(CommitEnd)
  case tick
  case shutDown
  /// The consumer has ended.
  case ended
}

/// A record that a pump holds, or whose copy is outstanding.
package struct HeldRecord: Sendable {
  let origin: Origin
  /// Among the records that the pump has taken.
  fileprivate let number: Int64
  let place: DeadLetter.Origin
  let timestamp: Int64
  let key: [UInt8]?
  let value: [UInt8]
  /// Why the record itself is not copied; nil if it is, or while that is unknown.
  var refusal: DeadLetter.Reason?
  /// Why Kafka will never take its copy; nil if it is to be copied.
  private(set) var condemnation: RDKafkaError?
  /// Whether its dead letter must leave out the value, because it was too large with it.
  private(set) var isShortened = false

  fileprivate init(_ record: ConsumedRecord, _ origin: Origin, number: Int64) {
    (self.origin, self.number) = (origin, number)
    place = DeadLetter.Origin(topic: record.topic, partition: record.partition, offset: record.offset)
    timestamp = record.timestamp
    key = record.key.map(Array.init)
    value = Array(record.value)
  }

  /// Its dead letter, if it is condemned.
  func letter(because error: RDKafkaError, note: String = "", at now: UnixTime) -> DeadLetter {
    DeadLetter(
      reason: .tooLarge, detail: "the sends topic refuses it for good: \(error.code)\(note)", origin: place, at: now,
      key: isShortened ? nil : key, value: isShortened ? [] : value, valueSize: value.count)
  }

  /// Notes an error that no later attempt can avoid. Returns whether the next attempt is another record.
  fileprivate mutating func condemn(_ error: RDKafkaError) -> Bool {
    guard condemnation != nil else {
      condemnation = error
      return true
    }
    defer { isShortened = true }
    return !isShortened
  }
}

/// The pump's decisions: which records are held, due or settled, and which positions to commit.
///
/// A record is *held* until it is due, then its copy is *outstanding* until Kafka acknowledges it; a refused copy is
/// held for another second. Its offset settles with the acknowledgement, in whatever order. A record that the sends
/// topic will never take is *condemned*: dead-lettered instead of copied. In the order of the topic all held records are
/// due as soon as no copy is outstanding.
struct PumpState {
  /// The actions of one step.
  struct Effects {
    /// Records to be copied onto the sends topic, or dead-lettered if they are condemned.
    var due: [HeldRecord] = []
    /// Records whose copies or dead letters are durable.
    var settled: [HeldRecord] = []
    var group = GroupActions()
    /// Consumer credit to grant; negative: to take back.
    var credit = 0
  }

  private let policy: PumpPolicy
  /// The longest delay in milliseconds; nil in the order of the topic.
  private let delay: Int64?
  /// The span in milliseconds whose due records are released together.
  /// Each partition releases at another moment of it, so that the workers get no flood.
  private let interval: Int64
  private(set) var partitions: PartitionTracker
  /// By uptime; in the order of the topic by their numbers there.
  private var waiting = DeadlineQueue<HeldRecord>()
  /// The records taken so far.
  private var taken: Int64 = 0
  /// In the order of the topic: the uptime before which nothing is copied.
  private var pauseEnd = Int64.min
  private var bytes = 0
  /// Copies that Kafka has not acknowledged.
  private var outstanding = 0
  private var credit = CreditWindow()

  /// A worker that gets a record of a retry topic too early defers it again.
  init(_ policy: PumpPolicy) {
    self.policy = policy
    partitions = PartitionTracker(
      commits: CommitSchedule(
        interval: policy.commitInterval.milliseconds, records: .max, metadataBytes: policy.commitMetadataBytes))
    guard case .whenDue(let delay) = policy.order else {
      (self.delay, interval) = (nil, 1)
      return
    }
    self.delay = delay.milliseconds
    interval = RetryTopic.lateness(of: delay).milliseconds
  }

  private var isInOrder: Bool { delay == nil }

  /// Records that are held or outstanding.
  var held: Int { waiting.count + outstanding }

  /// Takes one step.
  mutating func advance(_ step: PumpStep, at now: Moment) -> Effects {
    var effects = Effects()
    switch step {
    case .event(.records(let records)): take(records, at: now)
    case .event(.assigned(let assigned, let rebalance)):
      partitions.assign(
        assigned, rebalance, resumeDeadline: policy.resumeDeadline, at: now, into: &effects.group)
    case .event(.revoked(let revoked, let rebalance)):
      partitions.revoke(revoked, rebalance, deadline: policy.drainDeadline, at: now)
    case .event(.lost(let lost, let rebalance)):
      partitions.lose(lost, rebalance, into: &effects.group)
      forgetUnowned()
    case .recovered(let answer): partitions.recover(answer, into: &effects.group)
    case .committed(let end): partitions.endCommit(end.offsets, end.error, at: now)
    case .event(.failed), .tick, .ended: break
    case .acknowledged(let answers):
      outstanding -= answers.count
      // In order, all behind a failure are copied again.
      var isBehindFailure = false
      for answer in answers {
        guard answer.error != nil || isBehindFailure else {
          bytes -= answer.held.value.count
          partitions.settle(answer.held.origin)
          effects.settled.append(answer.held)
          continue
        }
        var held = answer.held
        let isOther = !isBehindFailure && answer.error.map { $0.code.condemnsRecord && held.condemn($0) } ?? false
        // When Kafka is out of order, another try after a second is soon enough.
        let due = isOther ? now.uptime : now.uptime + 1000
        waiting.insert(held, due: isInOrder ? held.number : due)
        guard isInOrder, !isBehindFailure else { continue }
        (isBehindFailure, pauseEnd) = (true, due)
      }
    case .shutDown: _ = partitions.shutDown(within: policy.drainDeadline + policy.lastCommitDeadline, at: now)
    }
    for recovery in partitions.expireRecoveries(at: now) { effects.group.completions.append(recovery.rebalance) }
    collectDue(at: now, into: &effects)
    finishSettling(at: now)
    effects.group.commit = partitions.beginCommit(at: now)
    finishDrains(at: now, into: &effects)
    effects.group.isToLeave = partitions.leave(at: now)
    if partitions.mayTake {
      effects.credit = credit.grant(
        records: policy.records - held, bytes: policy.bytes - bytes, step: policy.records / 8)
    }
    return effects
  }

  private mutating func take(_ records: [ConsumedRecord], at now: Moment) {
    credit.receive(records: records.count, bytes: records.reduce(0) { $0 + $1.value.count })
    for record in records {
      guard let origin = partitions.begin(record) else { continue }
      taken += 1
      let held = HeldRecord(record, origin, number: taken)
      bytes += held.value.count
      waiting.insert(held, due: delay.map { due(record, within: $0, at: now) } ?? held.number)
    }
  }

  /// The uptime at which a deferred record is due.
  private func due(_ record: ConsumedRecord, within delay: Int64, at now: Moment) -> Int64 {
    // A record that cannot be read is due at once: the worker dead-letters it with the reason.
    let wait = (try? RetryRecord.wait(of: record.value, at: now.wall).milliseconds) ?? 0
    let due = now.uptime + min(delay, max(0, wait))
    return wait <= 0 ? due : moment(of: record.partition, after: due)
  }

  /// The first moment from `due` on at which records of the partition are released.
  private func moment(of partition: Int32, after due: Int64) -> Int64 {
    // Multiples of the golden ratio lie evenly in the interval, whatever their number.
    let shift = Int64(partition) * 618 % 1000 * interval / 1000
    return (due - shift + interval - 1) / interval * interval + shift
  }

  private mutating func collectDue(at now: Moment, into effects: inout Effects) {
    guard !partitions.isShuttingDown, !isInOrder || outstanding == 0 && now.uptime >= pauseEnd else { return }
    while let held = waiting.popDue(at: isInOrder ? .max : now.uptime) {
      guard partitions.isOpen(held.origin) else {
        bytes -= held.value.count
        continue
      }
      outstanding += 1
      effects.due.append(held)
    }
  }

  /// Ends the wait for copies in partitions that are given back, or before the end.
  private mutating func finishSettling(at now: Moment) {
    guard partitions.isSettling else { return }
    partitions.endDrains(isProgressing: outstanding > 0, at: now)
    guard let deadline = partitions.shutdown.deadline, !partitions.shutdown.hasDrained else { return }
    let patience = policy.lastCommitDeadline
    guard outstanding == 0 || now.uptime >= deadline - patience.milliseconds else { return }
    partitions.finishDraining(patience: patience, at: now)
  }

  private mutating func finishDrains(at now: Moment, into effects: inout Effects) {
    let finished = partitions.takeFinishedDrains(grace: policy.lastCommitDeadline, at: now)
    guard !finished.isEmpty else { return }
    for drain in finished {
      partitions.close(drain)
      effects.group.completions.append(drain.rebalance)
    }
    forgetUnowned()
  }

  /// Forgets the records of partitions that have another owner.
  private mutating func forgetUnowned() {
    let partitions = partitions
    for held in waiting.remove(where: { !partitions.isOpen($0.origin) }) { bytes -= held.value.count }
  }
}
