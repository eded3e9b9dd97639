import FanfareCore
import RDKafka

/// An event of the pump.
enum PumpStep: Sendable {
  case event(ConsumerEvent)
  /// Kafka's answer to each copy, nil if it is durable, and the first error.
  case acknowledged([(held: PumpState.Held, error: RDKafkaError?)])
  case tick
  case shutDown
  /// The consumer has ended.
  case ended
}

/// The pump's decisions: which records are held, due or settled, and which positions to commit.
///
/// A record is *held* until it is due, then its copy is *outstanding* until Kafka acknowledges it; a refused copy is
/// held for another second. Its offset settles with the acknowledgement. A record that the sends topic will never take
/// is *condemned*: dead-lettered instead of copied.
struct PumpState {
  /// A record that is held, or whose copy is outstanding.
  struct Held: Sendable {
    let origin: Origin
    let place: DeadLetter.Origin
    let key: [UInt8]?
    let value: [UInt8]
    /// Why it is condemned; nil if it is to be copied.
    private(set) var condemnation: RDKafkaError?
    /// Whether its dead letter must leave out the value, because it was too large with it.
    private(set) var isShortened = false

    init(_ record: ConsumedRecord, _ origin: Origin) {
      self.origin = origin
      place = DeadLetter.Origin(topic: record.topic, partition: record.partition, offset: record.offset)
      key = record.key.map(Array.init)
      value = Array(record.value)
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

  /// The actions of one step.
  struct Effects {
    /// Records to be copied onto the sends topic, or dead-lettered if they are condemned.
    var due: [Held] = []
    /// Positions to store.
    var positions: [PartitionOffset] = []
    /// Rebalances that may take effect, once the positions are stored.
    var completed: [Rebalance] = []
    /// Consumer credit to grant; negative: to take back.
    var credit = 0
    /// Whether the group may be left.
    var hasDrained = false
  }

  private struct Drain {
    /// Excludes partitions that have been assigned again since.
    var partitions: [TopicPartition]
    let rebalance: Rebalance
    let deadline: Int64
  }

  private let delay: Int64
  /// The span in milliseconds whose due records are released together.
  /// Each partition releases at another moment of it, so that the workers get no flood.
  private let interval: Int64
  private let limits: RetryPump.Limits
  private var offsets = PartitionOffsets()
  private var waiting = DeadlineQueue<Held>()
  private var bytes = 0
  /// Copies that Kafka has not acknowledged.
  private var outstanding = 0
  private var credit = CreditWindow()
  private var drains: [Drain] = []
  private var shutdownDeadline: Int64?

  /// Holds records for at most `delay`: a worker that gets one too early defers it again.
  init(delay: Duration, limits: RetryPump.Limits) {
    self.delay = delay.milliseconds
    interval = RetryPump.lateness(of: delay).milliseconds
    self.limits = limits
  }

  /// Records that are held or outstanding.
  var held: Int { waiting.count + outstanding }

  /// Takes one step.
  mutating func advance(_ step: PumpStep, at now: Moment) -> Effects {
    var effects = Effects()
    switch step {
    case .event(.records(let records)): take(records, at: now)
    case .event(.assigned(let partitions, let rebalance)):
      // A drain may still run for partitions whose revocation has taken effect: the consumer does not wait for it
      // longer than its `rebalanceDeadline`. It must not close the new assignment.
      for index in drains.indices { drains[index].partitions.removeAll(where: partitions.contains) }
      for partition in partitions { offsets.assign(partition) }
      effects.completed.append(rebalance)
    case .event(.revoked(let partitions, let rebalance)):
      for partition in partitions { offsets.beginClosing(partition) }
      drains.append(
        Drain(partitions: partitions, rebalance: rebalance, deadline: now.uptime + limits.drainDeadline.milliseconds))
    case .event(.lost(let partitions, let rebalance)):
      for partition in partitions { offsets.close(partition) }
      forgetUnowned()
      effects.completed.append(rebalance)
    case .event(.failed), .tick, .ended: break
    case .acknowledged(let answers):
      outstanding -= answers.count
      for answer in answers {
        guard let error = answer.error else {
          bytes -= answer.held.value.count
          offsets.settle(answer.held.origin)
          continue
        }
        var held = answer.held
        let isOther = error.code.condemnsRecord && held.condemn(error)
        // When Kafka is out of order, another try after a second is soon enough.
        waiting.insert(held, due: isOther ? now.uptime : now.uptime + 1000)
      }
    case .shutDown:
      for partition in offsets.partitions { offsets.beginClosing(partition) }
      shutdownDeadline = shutdownDeadline ?? now.uptime + limits.drainDeadline.milliseconds
    }
    collectDue(at: now, into: &effects)
    finishDrains(at: now, into: &effects)
    effects.positions += offsets.takeChanged(metadataLimit: 0)
    let isDrained = outstanding == 0 || now.uptime >= shutdownDeadline ?? .max
    effects.hasDrained = shutdownDeadline != nil && isDrained
    if shutdownDeadline == nil, drains.isEmpty {
      effects.credit = credit.grant(
        records: limits.records - held, bytes: limits.bytes - bytes, step: limits.records / 8)
    }
    return effects
  }

  private mutating func take(_ records: [ConsumedRecord], at now: Moment) {
    credit.receive(records: records.count, bytes: records.reduce(0) { $0 + $1.value.count })
    for record in records {
      guard let origin = offsets.begin(record) else { continue }
      let held = Held(record, origin)
      bytes += held.value.count
      // A record that cannot be read is due at once: the worker dead-letters it with the reason.
      let wait = (try? RetryRecord.wait(of: record.value, at: now.wall).milliseconds) ?? 0
      let due = now.uptime + min(delay, max(0, wait))
      waiting.insert(held, due: wait <= 0 ? due : moment(of: record.partition, after: due))
    }
  }

  /// The first moment from `due` on at which records of the partition are released.
  private func moment(of partition: Int32, after due: Int64) -> Int64 {
    // Multiples of the golden ratio lie evenly in the interval, whatever their number.
    let shift = Int64(partition) * 618 % 1000 * interval / 1000
    return (due - shift + interval - 1) / interval * interval + shift
  }

  private mutating func collectDue(at now: Moment, into effects: inout Effects) {
    guard shutdownDeadline == nil else { return }
    while let held = waiting.popDue(at: now.uptime) {
      guard offsets.isOpen(held.origin) else {
        bytes -= held.value.count
        continue
      }
      outstanding += 1
      effects.due.append(held)
    }
  }

  private mutating func finishDrains(at now: Moment, into effects: inout Effects) {
    guard !drains.isEmpty else { return }
    // Before the partitions are closed, which forgets their positions.
    effects.positions += offsets.takeChanged(metadataLimit: 0)
    var remaining: [Drain] = []
    for drain in drains {
      guard outstanding == 0 || now.uptime >= drain.deadline else {
        remaining.append(drain)
        continue
      }
      for partition in drain.partitions { offsets.close(partition) }
      effects.completed.append(drain.rebalance)
    }
    guard remaining.count < drains.count else { return }
    drains = remaining
    forgetUnowned()
  }

  /// Forgets the records of partitions that have another owner.
  private mutating func forgetUnowned() {
    let offsets = offsets
    for held in waiting.remove(where: { !offsets.isOpen($0.origin) }) { bytes -= held.value.count }
  }
}
