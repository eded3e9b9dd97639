import FanfareCore

/// Conversions between retry records and the devices of work items.
extension RetryRecord {
  /// The record of an item's devices: those to be deferred, and the results of the others.
  init(
    _ devices: ArraySlice<DeviceProgress>, of send: SendRequest, _ part: StatusPart, deferrals: Int,
    cameEarly: Bool = false, times: SendTimes, at now: Moment
  ) {
    self.init(
      send: send, part: part.part, parts: part.parts, attempt: part.attempt, deferrals: deferrals,
      cameEarly: cameEarly, devices: devices.map { Device($0, at: now) }, counts: part.counts, times: times)
  }

  /// The same record, deferred again: it comes back no earlier than `moment`.
  func deferredAgain(until moment: UnixTime) -> RetryRecord {
    let devices = devices.map { device -> Device in
      guard case .waiting(let device) = device else { return device }
      return .waiting(
        Waiting(
          registration: device.registration, platform: device.platform, notBefore: max(moment, device.notBefore),
          attempts: device.attempts, heldAttempts: device.heldAttempts, waits: device.waits,
          wasUnanswered: device.wasUnanswered, firstAttemptAt: device.firstAttemptAt, reason: device.reason,
          status: device.status, contradictions: device.contradictions))
    }
    return RetryRecord(
      send: send, part: part, parts: parts, attempt: attempt, deferrals: deferrals + 1, cameEarly: false,
      devices: devices, counts: counts, times: times)
  }

  /// The part of the send it stands for.
  var statusPart: StatusPart { StatusPart(part: part, parts: parts, attempt: attempt, counts: counts) }
}

extension RetryRecord.Device {
  fileprivate init(_ device: DeviceProgress, at now: Moment) {
    guard device.phase == .deferred else {
      self = .done(device.timedResult(at: now))
      return
    }
    self = .waiting(
      RetryRecord.Waiting(
        registration: device.target.registration, platform: device.target.platform,
        notBefore: now.wall(at: device.due), attempts: device.history.attempts,
        heldAttempts: device.history.heldAttempts, waits: device.history.waits,
        wasUnanswered: device.history.wasUnanswered, firstAttemptAt: device.firstAttempt(at: now),
        reason: device.reason, status: device.status, contradictions: device.history.contradictions))
  }

  /// The result to report if its record is too large to be deferred.
  var whenTooLarge: DeviceResult {
    switch self {
    case .done(let result): result
    case .waiting(let device): device.givenUp(because: device.reason.isEmpty ? "TooLargeToWait" : device.reason)
    }
  }
}

extension RetryRecord.Waiting {
  fileprivate func givenUp(because reason: String) -> DeviceResult {
    DeviceResult(
      registration: registration, platform: platform, outcome: wasUnanswered ? .unconfirmed : .failed, reason: reason,
      status: status, attempts: attempts, pushedAt: firstAttemptAt)
  }
}

extension DeviceProgress {
  /// Restores the device of a record that has come back.
  /// It has no handle yet, so it is looked up before the push. Devices that are due later than `longestRest` are
  /// deferred again.
  init(_ device: RetryRecord.Device, sender: Int, acceptedAt: UnixTime, longestRest: Duration, at now: Moment) {
    let (registration, platform) =
      switch device {
      case .done(let result): (result.registration, result.platform)
      case .waiting(let device): (device.registration, device.platform)
      }
    self.init(
      target: Target(
        registration: registration, platform: platform, handle: "", registeredAt: UnixTime(milliseconds: 0)),
      sender: sender, isRegistered: true, checkedAt: Self.never)
    // Its first attempt was over when it was deferred: no send of the same key waits for it.
    _ = passFirstAttempt()
    switch device {
    case .done(let result):
      tried(RetryPolicy.History(attempts: result.attempts))
      finish(as: result.outcome, reason: result.reason, status: result.status)
      restore(
        firstAttemptAt: result.pushedAt.map(now.uptime(at:)), answeredAt: result.answeredAt.map(now.uptime(at:)))
    case .waiting(let device):
      tried(
        RetryPolicy.History(
          attempts: device.attempts, waits: device.waits, wasUnanswered: device.wasUnanswered,
          heldAttempts: device.heldAttempts, contradictions: device.contradictions))
      refused(reason: device.reason, status: device.status)
      // A clock that was behind may have put the first attempt before the acceptance.
      let first = device.firstAttemptAt.map {
        now.uptime - max(0, (now.wall - max($0, acceptedAt)).milliseconds)
      }
      // The record may be early: another of its devices was due earlier, or the topic's delay is shorter.
      let phase: Phase =
        if device.notBefore <= now.wall {
          .queued
        } else {
          device.notBefore > now.wall + longestRest ? .deferred : .resting
        }
      restore(firstAttemptAt: first, due: now.uptime + (device.notBefore - now.wall).milliseconds, phase)
    }
  }
}
