import FanfareCore
import RDKafka

/// What the state machine wants done: collected over one turn and performed at its end, so that a turn costs one call
/// per sender and one per topic.
struct Effects: Sendable {
  /// Pushes to hand over, by sender's number.
  var submissions: [[Push]]
  /// Records to produce.
  var productions = Productions()
  /// A question for the registry; at most one is open.
  var lookUp: LookUp?
  /// What is to be asked, or told, about broadcasts; each is a task of its own.
  var questions: [BroadcastQuestion] = []
  /// Devices to drop; at most one such request is open.
  var drops: [Drop] = []
  /// Positions to commit; at most one commit is open.
  var commit: [PartitionOffset] = []
  /// Questions about what the group has committed.
  var resumptions: [Question] = []
  /// Rebalances that may take effect.
  var completions: [Rebalance] = []
  /// Further records to ask for; negative: to ask for so many fewer.
  var credit = 0
  /// Whether no further segments are to come for now; nil: as before.
  var holdsBackSegments: Bool?
  /// Whether everything that can be settled and committed before the end has been: leave the group.
  var isToLeave = false
  /// What happened, for the metrics.
  var tallies = Tallies()
  /// What somebody should know, for the log; bounded, see `Alarm`.
  var alarms: [Alarm] = []
  /// Alarms that found no room.
  var suppressedAlarms = 0

  /// A device to drop.
  struct Drop: Sendable {
    let sender: Int
    let device: DeadDevice
  }

  /// What has the group committed for these partitions?
  struct Question: Sendable {
    let number: Int
    let partitions: [TopicPartition]
  }

  init(senders: Int) {
    submissions = [[Push]](repeating: [], count: senders)
  }

  /// Adds an alarm, unless this turn has had too many: a fault that hits every push must not fill a disk.
  mutating func alarm(_ alarm: Alarm) {
    if alarms.count < 32 { alarms.append(alarm) } else { suppressedAlarms += 1 }
  }
}
