import DequeModule
import FanfareCore

/// What a page of a broadcast has put off follows the broadcast's course, too, when it comes back.
extension DispatchState {
  /// Pushes that a broadcast's rate allows, from a moment on.
  struct Permits: Sendable {
    let count: Int
    let from: UnixTime
    let perSecond: Int
  }

  /// It is known what is wanted of the broadcast of which something has come back.
  mutating func resume(_ parked: Parked, of course: Steering.Course, at now: Moment, into effects: inout Effects) {
    let slot = parked.ticket.slot
    guard isCurrent(parked.ticket), items[slot].phase == .resolving, let retry = read(parked, at: now) else { return }
    switch course {
    case .running: park(parked, retry, at: now, into: &effects)
    case .paused:
      // What has expired ends as any other does, and what expires meanwhile is not pushed before.
      guard let delay = topics.retries.first?.delay, now.wall < expiry(of: retry.send) else { return self.parked.append(parked) }
      produceAgain(retry, after: delay, in: slot, at: now, into: &effects)
    case .cancelled:
      items[slot].phase = .settling
      items[slot].unacknowledged = 1
      produce(
        page: retry.part, of: retry.parts, of: retry.send, as: .cancelled, devices: retry.devices.compactMap(\.whenCancelled),
        counts: retry.counts, attempt: retry.attempt, for: slot, at: now, into: &effects)
    }
  }

  /// Lets what a page has put off wait until there is room for it: what has come back and is being pushed is no more than a page,
  /// for all of it is repeated after a crash. Where so much waits that it would take the room of everything else, or for long, it
  /// comes back later.
  private mutating func park(_ parked: Parked, _ retry: RetryRecord, at now: Moment, into effects: inout Effects) {
    var parked = parked
    parked.weight = weight(of: retry, in: parked.ticket.slot, at: now)
    guard parked.weight > 0 else { return self.parked.append(parked) }
    if !parkedPages.isEmpty, parkedPageBytes + parked.value.count > configuration.maximumBytes / 4,
      let delay = topics.retries.first?.delay, now.wall + delay + RetryPump.lateness(of: delay) < expiry(of: retry.send)
    {
      return produceAgain(retry, after: delay, in: parked.ticket.slot, at: now, into: &effects)
    }
    parked.since = now.uptime
    parked.expiresAt = expiry(of: retry.send)
    parkedPageBytes += parked.value.count
    parkedPages.append(parked)
  }

  /// Lets come back later what has waited for room for long, and all of it where nothing may stay: the positions of its
  /// partitions stand still meanwhile, and nobody asks whether its broadcast is still to be pushed. What would not live that
  /// long stays.
  mutating func putOffWhatIsParked(at now: Moment, into effects: inout Effects) {
    guard !parkedPages.isEmpty, let delay = topics.retries.first?.delay else { return }
    let back = now.wall + delay + RetryPump.lateness(of: delay)
    let all = parkedPages
    parkedPages.removeAll()
    for next in all {
      let slot = next.ticket.slot
      let isOpen = isCurrent(next.ticket) && items[slot].phase == .resolving
      let hasWaited = isFarBehind || now.uptime - next.since > configuration.longestRest.milliseconds
      guard isOpen, hasWaited, back < next.expiresAt, let retry = read(next, at: now) else {
        parkedPages.append(next)
        continue
      }
      parkedPageBytes -= next.value.count
      produceAgain(retry, after: delay, in: slot, at: now, into: &effects)
    }
  }

  /// Writes the record of the item again as it is, to come back after so long.
  private mutating func produceAgain(
    _ retry: RetryRecord, after delay: Duration, in slot: Int, at now: Moment, into effects: inout Effects
  ) {
    items[slot].phase = .settling
    items[slot].unacknowledged = 1
    produce(retry.putOffAgain(until: now.wall + delay), for: slot, at: now, into: &effects)
  }

  /// How much of the room for what pages have put off the record takes.
  private func weight(of retry: RetryRecord, in slot: Int, at now: Moment) -> Int {
    guard retry.isOfPage else { return 0 }
    let count = pushable(of: retry, in: slot, at: now)
    return count > 0 && retry.send.maximumPerSecond != nil ? max(count, configuration.pageDevices) : count
  }

  /// How many devices of the record could be pushed to now or soon.
  private func pushable(of retry: RetryRecord, in slot: Int, at now: Moment) -> Int {
    let hub = items[slot].hub
    return retry.devices.count { device in
      guard case .waiting(let device) = device, device.notBefore <= now.wall + configuration.longestRest else { return false }
      let sender = table.sender(hub: hub, platform: device.platform)
      return sender >= 0 && mayPush(sender, at: now)
    }
  }

  /// Whether the sender may be given anything now.
  func mayPush(_ sender: Int, at now: Moment) -> Bool { senders[sender].gate.allowance(at: now.uptime) > 0 }

  /// Goes on with what pages have put off as far as there is room, and asks when that of broadcasts with a rate may be pushed.
  mutating func resumeParkedPages(at now: Moment, into effects: inout Effects) {
    while devices < configuration.maximumDevices, let next = parkedPages.first {
      let slot = next.ticket.slot
      let isOpen = isCurrent(next.ticket) && items[slot].phase == .resolving
      guard !isOpen || returned == 0 || returned + next.weight <= configuration.pageDevices else { return }
      parkedPages.removeFirst()
      parkedPageBytes -= next.value.count
      guard isOpen, let retry = read(next, at: now) else { continue }
      holdRoom(for: retry, in: slot, weight: next.weight, at: now)
      guard let rate = retry.send.maximumPerSecond, !topics.retries.isEmpty, now.wall < expiry(of: retry.send) else {
        resume(retry, in: slot, at: now, into: &effects)
        continue
      }
      // A second's at most: what every worker reserves at a time is how far ahead of the others the last one is.
      let count = max(1, min(pushable(of: retry, in: slot, at: now), rate))
      let broadcast = BroadcastID(hub: retry.send.hub, send: retry.send.identity)
      effects.questions.append(.permits(next, count, broadcast, perSecond: rate))
    }
  }

  /// The item takes so much of the room for what pages have put off, until it is gone, unless it does so already.
  mutating func holdRoom(for retry: RetryRecord, in slot: Int, weight: Int, at now: Moment) {
    guard items[slot].resumed == nil else { return }
    returned += weight
    items[slot].resumed = WorkItem.Resumed(
      part: retry.part, parts: retry.parts, attempt: retry.attempt, deferrals: retry.deferrals,
      cameEarly: retry.notBefore > now.wall + configuration.longestRest, counts: retry.counts, weight: weight)
  }

  /// It is known from when on so many devices of what has come back may be pushed to.
  mutating func permitted(_ parked: Parked, _ permits: Permits, at now: Moment, into effects: inout Effects) {
    let slot = parked.ticket.slot
    guard isCurrent(parked.ticket), items[slot].phase == .resolving, let retry = read(parked, at: now) else { return }
    resume(retry, in: slot, permits: permits, at: now, into: &effects)
  }

  /// Gives each device that could be pushed to now its time, as its broadcast's rate allows; those without a permit come back
  /// later and ask again. So do those whose sender is stopped, for it may work again while they rest, and those whose time is too
  /// far ahead to rest here.
  mutating func space(_ slot: Int, _ permits: Permits, at now: Moment) {
    guard let shortest = topics.retries.first?.delay else { return }
    // A moment that seems to be far ahead is that of a clock that was set back.
    let isAhead = permits.from > now.wall + PushQuota.horizon
    let from = now.uptime + (isAhead ? 0 : (permits.from - now.wall).milliseconds)
    let rest = max(now.uptime + shortest.milliseconds, from + Int64(permits.count * 1000 / permits.perSecond))
    var number = 0
    for (index, device) in items[slot].devices.enumerated() {
      guard device.phase == .queued || device.phase == .resting, device.sender >= 0 else { continue }
      let mayPush = mayPush(device.sender, at: now)
      let isPermitted = number < permits.count && mayPush
      let due = max(device.due, isPermitted ? from + Int64(number * 1000 / permits.perSecond) : rest)
      items[slot].devices[index].due = due
      let isToLeave = !isPermitted || due > now.uptime + configuration.longestRest.milliseconds
      items[slot].devices[index].phase = isToLeave ? .putOff : due > now.uptime ? .resting : .queued
      if mayPush { number += 1 }
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
  /// Whether it is what a page of a broadcast has put off, rather than what a send in one piece has.
  var isOfPage: Bool { send.isBroadcast && (parts > 1 || send.maximumPerSecond != nil) }

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
