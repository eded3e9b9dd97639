import FanfareCore
import RDKafka

/// What can happen to the pump.
enum PumpStep: Sendable {
  case event(ConsumerEvent)
  /// Kafka has answered: for each copy whether it has it, and the first of the errors.
  case acknowledged([(held: PumpState.Held, isDurable: Bool)], RDKafkaError?)
  case tick
  case shutDown
  /// The consumer has ended.
  case ended
}

/// Everything the pump knows, and every decision it takes: which records wait, which are due, what may be committed. A
/// value; somebody else performs what it returns.
struct PumpState {
  /// A record that waits, or whose copy is on its way.
  struct Held: Sendable {
    let origin: Origin
    let key: [UInt8]?
    let value: [UInt8]
  }

  /// What is to be done.
  struct Effects {
    /// Records to be copied onto the sends topic.
    var due: [Held] = []
    /// Positions to store.
    var offsets: [PartitionOffset] = []
    /// Changes of the assignment that may take effect, once the positions are stored.
    var completed: [Rebalance] = []
    /// Further records to ask for; negative: to ask for no more.
    var credit = 0
    /// Whether the group may be left.
    var hasDrained = false
  }

  private struct Drain {
    /// Without those that have been assigned anew since.
    var partitions: [TopicPartition]
    let rebalance: Rebalance
    let deadline: Int64
  }

  private let delay: Int64
  /// What is due within so many milliseconds is released together, each partition's at another moment, so that the
  /// workers get no flood.
  private let interval: Int64
  private let limits: RetryPump.Limits
  private var ledger = PartitionLedger()
  private var waiting = DeadlineQueue<Held>()
  private var bytes = 0
  /// The largest record that was met: how many more there is room for goes by it.
  private var largest = 4096
  private var outstanding = 0
  /// Records asked for that have not come; negative where some came that were not asked for any more.
  private var credit = 0
  private var drains: [Drain] = []
  private var shutdownDeadline: Int64?

  /// Records are held for at most `delay`; what must wait longer is put off again by the worker that gets it.
  init(delay: Duration, limits: RetryPump.Limits) {
    self.delay = delay.milliseconds
    interval = RetryPump.lateness(of: delay).milliseconds
    self.limits = limits
  }

  /// Records that wait or whose copies are on their way.
  var held: Int { waiting.count + outstanding }

  /// Takes one step.
  mutating func advance(_ step: PumpStep, at now: Moment) -> Effects {
    var effects = Effects()
    switch step {
    case .event(.records(let records)): take(records, at: now)
    case .event(.assigned(let partitions, let rebalance)):
      // Where the revocation took effect before its drain was over, that must not close what begins now.
      for index in drains.indices { drains[index].partitions.removeAll(where: partitions.contains) }
      for partition in partitions { ledger.assign(partition) }
      effects.completed.append(rebalance)
    case .event(.revoked(let partitions, let rebalance)):
      for partition in partitions { ledger.beginClosing(partition) }
      drains.append(
        Drain(partitions: partitions, rebalance: rebalance, deadline: now.uptime + limits.drainDeadline.milliseconds))
    case .event(.lost(let partitions, let rebalance)):
      for partition in partitions { ledger.close(partition) }
      forgetWhatIsNotOpen()
      effects.completed.append(rebalance)
    case .event(.failed), .tick, .ended: break
    case .acknowledged(let answers, _):
      outstanding -= answers.count
      for (held, isDurable) in answers {
        if isDurable {
          bytes -= held.value.count
          ledger.settle(held.origin)
        } else {
          // Kafka is out of order, and so is the front end by then; a second is soon enough.
          waiting.insert(held, due: now.uptime + 1000)
        }
      }
    case .shutDown:
      for partition in ledger.partitions { ledger.beginClosing(partition) }
      shutdownDeadline = shutdownDeadline ?? now.uptime + limits.drainDeadline.milliseconds
    }
    collectDue(at: now, into: &effects)
    finishDrains(at: now, into: &effects)
    effects.offsets += ledger.takeChanged(metadataLimit: 0)
    let isDrained = outstanding == 0 || now.uptime >= shutdownDeadline ?? .max
    effects.hasDrained = shutdownDeadline != nil && isDrained
    effects.credit = creditToGrant()
    return effects
  }

  private mutating func take(_ records: [ConsumedRecord], at now: Moment) {
    credit -= records.count
    for record in records {
      guard let origin = ledger.begin(record) else { continue }
      let held = Held(origin: origin, key: record.key.map(Array.init), value: Array(record.value))
      bytes += held.value.count
      largest = max(largest, held.value.count)
      // What cannot be read is due at once: on the sends topic the worker sets it aside with the reason.
      let wait = (try? RetryRecord.wait(of: record.value, at: now.wall).milliseconds) ?? 0
      let due = now.uptime + min(delay, max(0, wait))
      waiting.insert(held, due: wait <= 0 ? due : moment(of: record.partition, after: due))
    }
  }

  /// The first moment from `due` on at which what waits in the partition is released.
  private func moment(of partition: Int32, after due: Int64) -> Int64 {
    // Multiples of the golden ratio lie evenly in the interval, however many they are.
    let shift = Int64(partition) * 618 % 1000 * interval / 1000
    return (due - shift + interval - 1) / interval * interval + shift
  }

  private mutating func collectDue(at now: Moment, into effects: inout Effects) {
    guard shutdownDeadline == nil else { return }
    while let held = waiting.popDue(at: now.uptime) {
      guard ledger.isOpen(held.origin) else {
        bytes -= held.value.count
        continue
      }
      outstanding += 1
      effects.due.append(held)
    }
  }

  private mutating func finishDrains(at now: Moment, into effects: inout Effects) {
    guard !drains.isEmpty else { return }
    // Before their partitions are closed, and with them their positions.
    effects.offsets += ledger.takeChanged(metadataLimit: 0)
    var remaining: [Drain] = []
    for drain in drains {
      guard outstanding == 0 || now.uptime >= drain.deadline else {
        remaining.append(drain)
        continue
      }
      for partition in drain.partitions { ledger.close(partition) }
      effects.completed.append(drain.rebalance)
    }
    guard remaining.count < drains.count else { return }
    drains = remaining
    forgetWhatIsNotOpen()
  }

  /// What waits in partitions that belong to somebody else by now.
  private mutating func forgetWhatIsNotOpen() {
    let ledger = ledger
    for held in waiting.remove(where: { !ledger.isOpen($0.origin) }) { bytes -= held.value.count }
  }

  private mutating func creditToGrant() -> Int {
    guard shutdownDeadline == nil, drains.isEmpty else { return 0 }
    let room = bytes < limits.bytes ? min(limits.records - held, max(1, (limits.bytes - bytes) / largest)) : 0
    let change = room - credit
    // What was asked for when the records seemed to be small is taken back once they turn out not to be.
    guard change < 0 || (change > 0 && (credit <= 0 || change >= limits.records / 8)) else { return 0 }
    credit += change
    return change
  }
}
