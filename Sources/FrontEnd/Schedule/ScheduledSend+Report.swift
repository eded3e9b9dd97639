import FanfareCore

extension ScheduledSend {
  /// Whether it neither has gone nor was cancelled.
  var isWaiting: Bool { state == .held || state == .paused }
}

extension SendReport {
  /// What callers are told of a send that is or was scheduled, as long as the history does not know it.
  init(_ held: ScheduledSend) {
    let send = held.send
    let state: SendReport.State =
      switch held.state {
      case .held, .paused: .scheduled
      case .fired: .accepted
      case .cancelled: .cancelled
      }
    self.init(
      id: send.id, hub: send.hub, state: state, sender: send.sender, audience: send.audience.text,
      isBroadcast: send.isBroadcast, sendAt: held.due,
      control: held.isWaiting ? (held.state == .paused ? .paused : .running) : nil, acceptedAt: held.scheduledAt,
      settledAt: nil,
      counts: [:], devices: nil)
  }
}
