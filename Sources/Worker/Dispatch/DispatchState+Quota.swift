import FanfareCore

extension DispatchState {
  /// A ticket was taken from the sender's queue: it counts if it is on its way to the service.
  mutating func spendQuota(of sender: Int, for ticket: Ticket) {
    switch phase(of: ticket) {
    case .inFlight, .checking: senders[sender].quota.spend()
    case .queued, .resting, .waiting, .done, .putOff, .withdrawn, nil: break
    }
  }

  /// Has more reserved for the sender if it will need it.
  mutating func askForQuota(of sender: Int, at now: Moment, into effects: inout Effects) {
    // A sender that is stopped has no use for it.
    let isWaiting =
      !senders[sender].queue.isEmpty && senders[sender].gate.allowance(at: now.uptime) > 0
      && !senders[sender].quota.allowsPush(at: now.wall)
    guard let request = senders[sender].quota.request(isWaiting: isWaiting, at: now.wall) else { return }
    effects.questions.append(.quota(sender: sender, request.pushes, request.quota, lead: request.lead))
  }
}
