import FanfareCore

/// What a page of a broadcast has put off follows the broadcast's course, too, when it comes back.
extension DispatchState {
  /// It is known what is wanted of the broadcast of which something has come back.
  mutating func resume(_ parked: Parked, of course: Steering.Course, at now: Moment, into effects: inout Effects) {
    let slot = parked.ticket.slot
    guard isCurrent(parked.ticket), items[slot].phase == .resolving, let retry = read(parked, at: now) else { return }
    switch course {
    case .running: self.parked.append(parked)
    case .paused:
      // What has expired ends as any other does, and what expires meanwhile is not pushed before.
      guard let delay = topics.retries.first?.delay, now.wall < expiry(of: retry.send) else { return self.parked.append(parked) }
      let later = retry.putOffAgain(until: now.wall + delay)
      items[slot].phase = .settling
      items[slot].unacknowledged = 1
      produce(later, for: slot, at: now, into: &effects)
    case .cancelled:
      items[slot].phase = .settling
      items[slot].unacknowledged = 1
      produce(
        page: retry.part, of: retry.parts, of: retry.send, as: .cancelled, devices: retry.devices.compactMap(\.whenCancelled),
        counts: retry.counts, attempt: retry.attempt, for: slot, at: now, into: &effects)
    }
  }

  /// Reads again what was read when it came; nil is not to be expected, for only the bytes were kept.
  func read(_ parked: Parked, at now: Moment) -> RetryRecord? {
    let written = parked.timestamp >= 0 ? UnixTime(milliseconds: parked.timestamp) : now.wall
    do {
      return try RetryRecord.decode(parked.value, recordTime: written, now: now.wall)
    } catch {
      return nil
    }
  }
}

extension RetryRecord {
  /// The same, to come back no earlier than then.
  fileprivate func putOffAgain(until moment: UnixTime) -> RetryRecord {
    let devices = devices.map { device -> Device in
      guard case .waiting(let device) = device else { return device }
      return .waiting(
        Waiting(
          registration: device.registration, platform: device.platform, notBefore: max(moment, device.notBefore),
          attempts: device.attempts, heldAttempts: device.heldAttempts, waits: device.waits, wasUnanswered: device.wasUnanswered,
          firstAttemptAt: device.firstAttemptAt, reason: device.reason, status: device.status,
          contradictions: device.contradictions))
    }
    return RetryRecord(
      send: send, part: part, parts: parts, attempt: attempt, deferrals: deferrals + 1, cameEarly: false, devices: devices,
      counts: counts)
  }
}

extension RetryRecord.Device {
  /// What the status shows of it when its broadcast is cancelled: nothing where nothing was sent to it.
  fileprivate var whenCancelled: DeviceResult? {
    switch self {
    case .done(let result): result
    case .waiting(let device) where device.attempts == 0: nil
    case .waiting(let device):
      DeviceResult(
        registration: device.registration, platform: device.platform, outcome: device.wasUnanswered ? .unconfirmed : .failed,
        reason: device.reason, status: device.status, attempts: device.attempts)
    }
  }
}
