import FanfareCore
import RDKafka

/// Something an operator should know.
enum Alarm: Sendable {
  /// A sender cannot work and was stopped.
  case senderStopped(sender: Int, reason: String)
  /// A push service does not answer, or says that it cannot work, and is left alone.
  case serviceUnavailable(sender: Int, reason: String)
  /// It works again.
  case senderResumed(sender: Int)
  /// A push service called a request of ours malformed.
  case malformed(send: SendID, sender: Int, reason: String)
  /// Nothing is dropped any more, because too many devices look dead.
  case dropsSuspended(sender: Int)
  /// Dead devices are dropped again.
  case dropsResumed(sender: Int)
  /// A record was set aside.
  case deadLettered(DeadLetter.Origin, reason: DeadLetter.Reason, detail: String)
  /// A record that must be written was refused, not only for the moment.
  case productionRefused(topic: String, reason: String)
  /// So much of a page has failed that its broadcast is paused.
  case broadcastPaused(BroadcastID, failed: Int, of: Int)
  /// Partitions were given back although what has settled in them last is not committed: their next owner may do it
  /// again.
  case positionsLeft([TopicPartition], reason: String)
  /// Partitions were given back although so many of their sends had begun and not settled: their next owner does them
  /// again.
  case workLeft([TopicPartition], sends: Int)
  /// Partitions are read although the group has not said in time what their last owner has settled.
  case resumptionTimedOut([TopicPartition])
}
