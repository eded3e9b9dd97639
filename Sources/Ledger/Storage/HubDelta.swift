import FanfareCore

/// What one transaction adds to a hub's totals; the columns' numbers may be negative.
struct HubDelta {
  var accepted = 0
  var settled = 0
  var noTarget = 0
  var expired = 0
  var deadLettered = 0
  var cancelled = 0
  var unannounced = 0
  var duplicates = 0
  var devices = OutcomeCounts()

  /// Counts a send as settled with this state, or takes it away again.
  mutating func count(_ state: StatusRecord.State, _ sign: Int = 1) {
    settled += sign
    switch state {
    case .settled: break
    case .noTarget: noTarget += sign
    case .expired: expired += sign
    case .deadLettered: deadLettered += sign
    case .cancelled: cancelled += sign
    }
  }
}
