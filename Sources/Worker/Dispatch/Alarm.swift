import FanfareCore

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
}
