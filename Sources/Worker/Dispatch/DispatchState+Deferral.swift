import DequeModule
import FanfareCore
import RDKafka

/// What must wait longer than a worker keeps a push leaves its memory: it is written to a retry topic, and comes back
/// when its time has come.
///
/// The part of the send that it belongs to has no status record before that, so the send stays open, and counts once.
/// The record's own offset is settled as soon as Kafka has what was put off.
extension DispatchState {
  /// Puts the device off for so long. With the last one without a result the item leaves the worker.
  mutating func putOff(_ slot: Int, _ index: Int, for delay: Duration, at now: Moment, into effects: inout Effects) {
    delayOrder(slot, index, by: delay, at: now)
    items[slot].devices[index].phase = .putOff
    items[slot].devices[index].due = now.uptime + delay.milliseconds
    effects.tallies.deferrals.append(items[slot].devices[index].sender)
    passFirstAttempt(slot, index)
    closeDevice(slot, at: now, into: &effects)
  }

  /// A record that was put off has come back: its devices go on where they were, each after its owner was looked up
  /// again.
  mutating func resume(
    _ retry: RetryRecord, hub: Int, record: ConsumedRecord, origin: Origin, at now: Moment, into effects: inout Effects
  ) {
    let key = RecentSends.Key(id: retry.identity, hub: Int32(hub))
    guard isNew(key, origin: origin) else { return }
    let slot = occupy(origin: origin, bytes: record.value.count)
    items[slot].key = key
    items[slot].hub = hub
    let asItCame = Parked(ticket: ticket(slot), value: record.value, timestamp: record.timestamp)
    if retry.send.isBroadcast {
      let broadcast = BroadcastID(hub: retry.send.hub, send: retry.send.identity)
      return effects.questions.append(.course(asItCame, broadcast))
    }
    guard devices < configuration.maximumDevices, parked.isEmpty else { return parked.append(asItCame) }
    resume(retry, in: slot, at: now, into: &effects)
  }

  /// Goes on with what was put off and has come back while there was no room for its devices, as far as there is some
  /// now.
  mutating func resumeParked(at now: Moment, into effects: inout Effects) {
    while devices < configuration.maximumDevices, let next = parked.popFirst() {
      guard isCurrent(next.ticket), items[next.ticket.slot].phase == .resolving else { continue }
      guard let retry = read(next, at: now) else { continue }
      resume(retry, in: next.ticket.slot, at: now, into: &effects)
    }
  }

  /// Goes on with it. Of a send with a rate, only so many devices are pushed to, one after another, as have a permit.
  mutating func resume(
    _ retry: RetryRecord, in slot: Int, permits: Permits? = nil, at now: Moment, into effects: inout Effects
  ) {
    let hub = items[slot].hub
    items[slot].send = retry.send
    items[slot].expiresAt = expiry(of: retry.send)
    holdRoom(for: retry, in: slot, nil, at: now)
    items[slot].isBulk = retry.parts > 1 || isOfPage(retry)
    items[slot].phase = .dispatching
    items[slot].devices = retry.devices.map { progress(of: $0, hub: hub, acceptedAt: retry.send.acceptedAt, at: now) }
    if let rate = retry.send.maximumPerSecond, isOfPage(retry), now.wall < items[slot].expiresAt {
      space(slot, permits ?? Permits(count: 0, from: now.wall, perSecond: rate), at: now)
    }
    items[slot].openDevices = retry.devices.count
    devices += retry.devices.count
    // The last one that closes settles the item, so every one is counted as open before any is closed.
    for index in items[slot].devices.indices {
      let device = items[slot].devices[index]
      switch device.phase {
      case .done: closeDevice(slot, at: now, into: &effects)
      case .putOff: putOff(slot, index, for: .milliseconds(device.due - now.uptime), at: now, into: &effects)
      case .queued where device.sender < 0, .resting where device.sender < 0:
        finish(slot, index, as: .failed, reason: "NoSender", status: 0, at: now, into: &effects)
      case .withdrawn: break
      case .resting: resting.insert(ticket(slot, device: index), due: device.due)
      case .queued, .checking, .inFlight, .waiting:
        // At once, not with the next look at what waits for a stopped sender: more than one page has no room here.
        if items[slot].isBulk, !mayPush(device.sender, at: now), let delay = outageDelay(of: slot, index, at: now) {
          putOff(slot, index, for: delay, at: now, into: &effects)
        } else {
          enqueue(slot, index, for: device.sender)
        }
      }
    }
  }

  private func progress(
    of device: RetryRecord.Device, hub: Int, acceptedAt: UnixTime, at now: Moment
  ) -> DeviceProgress {
    // Without a handle, and so never sent to before it was looked up.
    func unknown(_ registration: RegistrationID, _ platform: Platform) -> DeviceProgress {
      var progress = DeviceProgress(
        target: Target(
          registration: registration, platform: platform, handle: "", registeredAt: UnixTime(milliseconds: 0)),
        sender: table.sender(hub: hub, platform: platform), isRegistered: true, checkedAt: DeviceProgress.never)
      // No send of the same key waits for what was put off: its first attempt was, or was not, long ago.
      progress.isFirstAttemptOver = true
      return progress
    }
    switch device {
    case .done(let result):
      var progress = unknown(result.registration, result.platform)
      progress.phase = .done
      progress.outcome = result.outcome
      progress.reason = result.reason
      progress.status = result.status
      progress.history.attempts = result.attempts
      return progress
    case .waiting(let device):
      var progress = unknown(device.registration, device.platform)
      progress.history.attempts = device.attempts
      progress.history.heldAttempts = device.heldAttempts
      progress.history.waits = device.waits
      progress.history.wasUnanswered = device.wasUnanswered
      progress.history.contradictions = device.contradictions
      progress.reason = device.reason
      progress.status = device.status
      if let first = device.firstAttemptAt {
        // By a clock that was behind it may lie before there was anything to try.
        progress.firstAttemptAt = now.uptime - max(0, (now.wall - max(first, acceptedAt)).milliseconds)
      }
      // Another device of the same record was due earlier, or the topic's delay is shorter.
      progress.due = now.uptime + (device.notBefore - now.wall).milliseconds
      if device.notBefore > now.wall + configuration.longestRest, !topics.retries.isEmpty {
        progress.phase = .putOff
      } else if device.notBefore > now.wall {
        progress.phase = .resting
      }
      return progress
    }
  }

  /// The record that keeps what remains to be done for these devices of the item.
  func retryRecord(
    of devices: ArraySlice<DeviceProgress>, counts: OutcomeCounts, send: SendRequest, part: Int, parts: Int,
    attempt: AttemptID?, deferrals: Int, cameEarly: Bool, at now: Moment
  ) -> RetryRecord {
    let listed = devices.map { device -> RetryRecord.Device in
      guard device.phase == .putOff else { return .done(device.result) }
      let first =
        device.history.attempts > device.history.heldAttempts
        ? now.wall + .milliseconds(device.firstAttemptAt - now.uptime) : nil
      return .waiting(
        RetryRecord.Waiting(
          registration: device.target.registration, platform: device.target.platform,
          notBefore: now.wall + .milliseconds(device.due - now.uptime),
          attempts: device.history.attempts, heldAttempts: device.history.heldAttempts, waits: device.history.waits,
          wasUnanswered: device.history.wasUnanswered, firstAttemptAt: first, reason: device.reason,
          status: device.status,
          contradictions: device.history.contradictions))
    }
    return RetryRecord(
      send: send, part: part, parts: parts, attempt: attempt, deferrals: deferrals, cameEarly: cameEarly,
      devices: listed,
      counts: counts)
  }
}

extension DispatchState {
  /// What is to be given back, and waits for a moment that will not come in time, is put off rather than given up: the
  /// next owner of the record would send again to the devices that have it.
  mutating func putOffWhatCannotProgress(at now: Moment, into effects: inout Effects) {
    guard let shortest = topics.retries.first else { return }
    for slot in items.indices
    where items[slot].phase == .dispatching && items[slot].hasStarted && ledger.isOwned(items[slot].origin)
      && !ledger.isOpen(items[slot].origin)
    {
      for index in items[slot].devices.indices {
        // With the last one put off the item is on its way to Kafka, and its devices are gone.
        guard items[slot].phase == .dispatching else { break }
        let device = items[slot].devices[index]
        let isStuck =
          device.phase == .resting || device.phase == .waiting
          || (device.phase == .queued && isHeldUp(device.sender, at: now))
        guard isStuck, now.wall + shortest.delay < items[slot].expiresAt else { continue }
        putOff(slot, index, for: shortest.delay, at: now, into: &effects)
      }
    }
  }
}

extension PushOutcome {
  /// Whether it says that the service is out of order: no answer, no connection, or an error of its own. That there is
  /// too much for it now, or for us, does not.
  var isOutage: Bool {
    switch verdict {
    case .unknown: true
    case .retryHere, .retryLater:
      status >= 500 || (status == 0 && !["QueueFull", "Closed", "Expired", "HostUnreachable"].contains(reason))
    case .accepted, .rejected, .deviceGone, .reauthenticate, .configurationError, .malformed: false
    }
  }
}
