import FanfareCore
import RDKafka

/// The actions of one turn, collected and performed at its end, so that a turn costs one call per
/// sender and per topic.
struct Effects: Sendable {
  /// Pushes to hand over, by sender's number.
  var submissions: [[Push]]
  /// Records to produce.
  var productions = Productions()
  /// A request to the registry; at most one is open.
  var lookUp: LookUp?
  /// Questions about broadcasts and quotas; each is a task of its own.
  var questions: [BroadcastQuestion] = []
  /// Devices to unregister; at most one request is open.
  var unregistrations: [Unregistration] = []
  /// Actions concerning the consumer group.
  var group = GroupActions()
  /// Consumer credit to grant; negative: to take back.
  var credit = 0
  /// Whether the consumer delivers no segments; nil: unchanged.
  var pausesSegments: Bool?
  /// Whether hubs were appended to the `SenderTable`.
  var hasNewHubs = false
  /// For the metrics.
  var tallies = Tallies()
  /// Finished spans of sampled sends.
  var spans: [TraceSpan] = []
  /// For the log.
  var alarms = Alarms()

  struct Unregistration: Sendable {
    let sender: Int
    let device: DeadDevice
  }

  init(senders: Int) {
    submissions = [[Push]](repeating: [], count: senders)
  }

  mutating func alarm(_ alarm: Alarm) { alarms.append(alarm) }
}

/// The alarms of a turn: at most 32, because a fault that hits every push must not fill a disk.
struct Alarms: Sendable {
  private(set) var list: [Alarm] = []
  /// How many alarms were left out.
  private(set) var suppressed = 0

  mutating func append(_ alarm: Alarm) {
    if list.count < 32 { list.append(alarm) } else { suppressed += 1 }
  }
}

/// An event that an operator should know of.
enum Alarm: Sendable {
  /// A push service refuses the configuration; its circuit is open.
  case senderStopped(sender: Int, reason: String)
  /// Devices of a platform are registered, and this worker has no sender for it.
  case senderMissing(sender: Int)
  /// A push service refuses the credential for a device while it accepts other pushes.
  case deviceRefused(sender: Int, reason: String)
  /// A push service does not answer, or reports that it cannot work; its circuit is open.
  case serviceUnavailable(sender: Int, reason: String)
  /// A push service works again.
  case senderResumed(sender: Int)
  /// A push service called a request malformed.
  case malformed(send: SendID, sender: Int, reason: String)
  /// Too many devices look dead: none is unregistered any more.
  case unregisteringSuspended(sender: Int)
  /// Dead devices are unregistered again.
  case unregisteringResumed(sender: Int)
  /// A record was dead-lettered.
  case deadLettered(DeadLetter.Origin, reason: DeadLetter.Reason, detail: String)
  /// Kafka refused a record that must be written, and waiting does not help.
  case productionRefused(topic: String, reason: String)
  /// Too many devices of a page have failed: its broadcast is paused.
  case broadcastPaused(BroadcastID, failed: Int, of: Int)
  /// Partitions were given back without their last positions: their next owner may repeat some
  /// work.
  case positionsLeft([TopicPartition], reason: String)
  /// Partitions were given back before all sends begun had settled: their next owner repeats them.
  case workLeft([TopicPartition], sends: Int)
  /// Partitions are read without the group's answer about the offsets that their last owner has
  /// settled.
  case recoveryTimedOut([TopicPartition])
}

/// The events of one turn for the metrics: small values in arrays, counted outside the state
/// machine.
struct Tallies: Sendable {
  /// One device's result.
  struct Result: Sendable {
    let sender: Int
    let outcome: DeviceResult.Outcome
    let reason: String
    /// From acceptance to the result, in milliseconds; never negative.
    let latency: Int64
  }

  /// One attempt that will be repeated.
  struct Retry: Sendable {
    let sender: Int
    let reason: String
  }

  /// One settled send.
  struct Settled: Hashable, Sendable {
    let hub: Int
    let state: StatusRecord.State
  }

  /// Sends whose first push was handed over, by hub.
  var dispatched: [Int] = []
  var results: [Result] = []
  var retries: [Retry] = []
  /// Deferred pushes, by sender.
  var deferrals: [Int] = []
  var settled: [Settled] = []
  /// Finished pages of broadcasts, by hub.
  var pages: [Int] = []
  var deadLetters: [DeadLetter.Reason] = []
  /// Records that an earlier owner of their partition had settled.
  var skipped = 0
}
