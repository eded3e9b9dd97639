import FanfareCore

/// How far a send has come on one of its devices.
struct DeviceProgress: Sendable {
  /// What is going on with it.
  enum Phase: Sendable {
    /// In the queue of its sender.
    case queued
    /// Its owner is being looked up once more; a place among the pushes in flight is reserved for it.
    case checking
    /// Handed to the sender.
    case inFlight
    /// Waiting until it may be sent again.
    case resting
    /// Waiting until what an outage has kept from the device before it has been sent.
    case waiting
    /// It has its result.
    case done
    /// Put off until `due`: what remains to be done for it is to be written to a retry topic.
    case putOff
    /// Its broadcast was cancelled before anything was sent to it: it counts as if it had not been found.
    case withdrawn
  }

  /// The time of the last look-up of a device that was not looked up here: it has no handle yet.
  static let never = Int64.min

  /// The device as it was looked up last.
  var target: Target
  /// Its sender's number; -1 where the hub has none for the platform.
  let sender: Int
  /// Whether the registry knows the device; a handle given by the caller need not be registered.
  let isRegistered: Bool
  var phase = Phase.queued
  var history = RetryPolicy.History()
  /// Whether the first attempt has its outcome, or cannot be made because the sender is stopped.
  var isFirstAttemptOver = false
  /// Uptime of the first attempt, or of the first since it was held, for the age of the later ones.
  var firstAttemptAt: Int64 = 0
  /// Its sender's recoveries when it was last held for it; nil when it has been sent since with the sender recovered,
  /// or was never held.
  var heldAt: Int?
  /// Uptime since which the last look-up of the device may be out of date: when it was asked.
  var checkedAt: Int64
  /// The result; meaningful when done.
  var outcome = DeviceResult.Outcome.failed
  /// The last reason given.
  var reason = ""
  /// The last HTTP status.
  var status = 0
  /// Uptime, because the clock may be set while the item's other devices are still open: not to be pushed to before.
  /// Meaningful when put off.
  var due: Int64 = 0

  init(target: Target, sender: Int, isRegistered: Bool, checkedAt: Int64) {
    self.target = target
    self.sender = sender
    self.isRegistered = isRegistered
    self.checkedAt = checkedAt
  }

  /// As the status record shows it.
  var result: DeviceResult {
    DeviceResult(
      registration: target.registration, platform: target.platform, outcome: outcome,
      reason: outcome == .delivered ? "" : reason,
      status: status, attempts: history.attempts)
  }
}
