import FanfareCore

/// What waits for one sender, and what it is trusted with.
struct SenderLane: Sendable {
  /// Pushes that wait for room, oldest first. Tickets of items that were given up meanwhile are skipped when their turn
  /// comes.
  var queue = PushQueue()
  /// Pushes handed to the sender and not yet answered, and places reserved for those being checked.
  var inFlight = 0
  /// Those of them that are broadcasts'.
  var bulkInFlight = 0
  /// How many of these there may be.
  var bulkWindow: BulkWindow
  /// What has come back of what pages have put off, and is being pushed: the sum of its weights.
  var returned = 0
  /// The places among them whose devices are being looked up: the service knows nothing of these.
  var checking = 0
  /// Pushes that the service has and has not answered.
  var unanswered: Int { inFlight - checking }
  /// Uptime since which nothing was heard of the service while pushes were in flight; nil: there is nothing to be heard
  /// of.
  var quietSince: Int64?
  /// Whether that is so long ago that nothing else is to wait for its answers.
  var isSilent = false
  var gate: SenderGate
  /// What an outage has kept from its devices.
  var order: OutageOrder
  /// What of the quota that all workers share is this worker's.
  var quota: SenderQuota
  /// The push that tries whether a stopped sender works again.
  var probe: Ticket?
  var breaker: DropBreaker
  /// Devices called dead, held back for a moment: when more follow than can be true, none of them is dropped.
  var deadDevices: [DeadDevice] = []
}
