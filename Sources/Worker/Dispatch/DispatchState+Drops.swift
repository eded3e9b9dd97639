import FanfareCore

extension DispatchState {
  /// Takes note of what an answer says about its device. A device called dead is held back for up to a second before it
  /// is dropped: when its like come in such numbers that the mistake must be ours, all that were held back are kept.
  mutating func noteDevice(_ outcome: PushOutcome, from sender: Int, about ticket: Ticket, into effects: inout Effects)
  {
    let isGone: Bool
    switch outcome.verdict {
    case .deviceGone: isGone = true
    case .accepted, .rejected, .malformed: isGone = false
    case .retryHere, .retryLater, .reauthenticate, .configurationError, .unknown: return
    }
    if senders[sender].breaker.record(isGone: isGone) {
      if senders[sender].breaker.isTripped {
        senders[sender].deadDevices.removeAll()
        effects.alarm(.dropsSuspended(sender: sender))
      } else {
        effects.alarm(.dropsResumed(sender: sender))
      }
    }
    // A device that is not noted for lack of room will be called dead again with its next push.
    guard isGone, !senders[sender].breaker.isTripped, senders[sender].deadDevices.count < 10_000,
      let device = device(ticket), device.isRegistered
    else { return }
    senders[sender].deadDevices.append(
      DeadDevice(
        hub: table.hub(ofSender: sender), registration: device.target.registration, handle: device.target.handle,
        since: outcome.since,
        reason: outcome.reason))
  }

  /// Asks the registry to drop what has gathered, if no such request is open. Whether a verdict is older than the
  /// registration is decided there.
  mutating func requestDrops(into effects: inout Effects) {
    guard !isDropping else { return }
    for sender in senders.indices where !senders[sender].deadDevices.isEmpty {
      effects.drops += senders[sender].deadDevices.map { Effects.Drop(sender: sender, device: $0) }
      senders[sender].deadDevices.removeAll()
    }
    isDropping = !effects.drops.isEmpty
  }

  /// The registry has dropped them, or could not: those are called dead again with their next push.
  mutating func dropsEnded() {
    isDropping = false
  }
}
