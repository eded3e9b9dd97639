import DequeModule
import FanfareCore

/// What a page of a broadcast has put off follows the broadcast's course, too, when it comes back.
extension DispatchState {
  /// Pushes that a broadcast's rate allows, from a moment on.
  struct Permits: Sendable {
    let count: Int
    let from: UnixTime
    let perSecond: Int

    /// For how long they may be used: a second's are reserved at a time.
    static let span = Duration.seconds(1)
  }

  /// It is known what is wanted of the broadcast of which something has come back.
  mutating func resume(_ parked: Parked, of course: BroadcastControl.State, at now: Moment, into effects: inout Effects)
  {
    let slot = parked.ticket.slot
    guard isCurrent(parked.ticket), items[slot].phase == .resolving, let retry = read(parked, at: now) else { return }
    let broadcast = BroadcastID(hub: retry.send.hub, send: retry.send.identity)
    switch course {
    case .running:
      pauses[broadcast] = nil
      park(parked, retry, at: now, into: &effects)
    case .paused:
      // What has expired ends as any other does, and what expires meanwhile is not pushed before.
      let expiresAt = expiry(of: retry.send)
      guard now.wall < expiresAt else { return self.parked.append(parked) }
      let delay = delay(ofPaused: broadcast, until: expiresAt, at: now)
      produceAgain(retry, after: delay, in: slot, at: now, into: &effects)
    case .cancelled:
      pauses[broadcast] = nil
      items[slot].phase = .settling
      items[slot].unacknowledged = 1
      produce(
        page: retry.part, of: retry.parts, of: retry.send, as: .cancelled,
        devices: retry.devices.compactMap(\.whenCancelled),
        counts: retry.counts, attempt: retry.attempt, for: slot, at: now, into: &effects)
    }
  }

  /// How long what pages of a paused broadcast have put off stays away: half of the time for which this worker knows of
  /// the pause, and five minutes at most. So little goes round however long the pause lasts, and what comes back after
  /// it is late by half of it at most, unless the broadcast ran meanwhile and this worker could not know. No less than
  /// the shortest time there is; what expires meanwhile ends soon after.
  mutating func delay(ofPaused broadcast: BroadcastID, until expiresAt: UnixTime, at now: Moment) -> Duration {
    let shortest = topics.retries.first?.delay ?? Self.shortestHold
    let longest = topics.retries.last?.delay ?? configuration.longestRest
    let known = pauses[broadcast]
    let since = known?.since ?? now.uptime
    let delay = max(
      shortest, min(.milliseconds(now.uptime - since) / 2, longest, Self.longestDelay, expiresAt - now.wall))
    let back = now.uptime + (delay + lateness(of: delay) + configuration.longestRest).milliseconds
    pauses[broadcast] = (since, max(known?.until ?? back, back))
    return delay
  }

  /// Forgets pauses of which nothing has come back in time: others have it, and when something comes again nobody here
  /// knows whether that is the same pause.
  mutating func forgetPauses(at now: Moment) {
    guard !pauses.isEmpty else { return }
    pauses = pauses.filter { now.uptime < $0.value.until }
  }

  /// Lets what a page has put off wait until there is room for it: what has come back and is being pushed to a service
  /// is no more than a page, for all of it is repeated after a crash. Where so much waits that it would take the room
  /// of everything else, or for long, it comes back later.
  private mutating func park(_ parked: Parked, _ retry: RetryRecord, at now: Moment, into effects: inout Effects) {
    var parked = parked
    guard let room = room(for: retry, in: parked.ticket.slot, at: now) else { return self.parked.append(parked) }
    parked.room = room
    if !parkedPages.isEmpty, parkedPageBytes + parked.value.count > configuration.maximumBytes / 4,
      let delay = topics.retries.first?.delay, now.wall + delay + RetryPump.lateness(of: delay) < expiry(of: retry.send)
    {
      return produceAgain(retry, after: delay, in: parked.ticket.slot, at: now, into: &effects)
    }
    parked.since = now.uptime
    parked.expiresAt = expiry(of: retry.send)
    parkedPageBytes += parked.value.count
    parkedPages.append(parked)
    mayResumeParkedPages = true
  }

  /// Lets come back later what has waited for room for long, and all of it where nothing may stay: the positions of its
  /// partitions stand still meanwhile, and nobody asks whether its broadcast is still to be pushed. What would not live
  /// that long stays.
  mutating func putOffWhatIsParked(at now: Moment, into effects: inout Effects) {
    guard !parkedPages.isEmpty, let delay = topics.retries.first?.delay else { return }
    let back = now.wall + delay + RetryPump.lateness(of: delay)
    // What was given up meanwhile is to go, too.
    mayResumeParkedPages = true
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
    guard !topics.retries.isEmpty else { return hold(retry.putOffAgain(until: now.wall + delay), in: slot, at: now) }
    items[slot].phase = .settling
    items[slot].unacknowledged = 1
    produce(retry.putOffAgain(until: now.wall + delay), for: slot, at: now, into: &effects)
  }

  /// The shortest time for which a deferred page is held in memory where there are no retry topics.
  static let shortestHold = Duration.seconds(1)

  /// Keeps a deferred page in memory until it is due, because there are no retry topics: it comes from one that is no
  /// longer configured. Gives its room back. The registry is then asked whether the broadcast is paused, as for a page
  /// that is readmitted. The record's offset is settled only with its last device.
  mutating func hold(_ retry: RetryRecord, in slot: Int, at now: Moment) {
    if case .returned(let room) = items[slot].role {
      items[slot].role = .send
      giveBack(room, of: items[slot].hub)
    }
    items[slot].resumed = nil
    items[slot].phase = .resolving
    let held = Parked(
      ticket: ticket(slot), value: retry.encoded(at: now.wall)[...], timestamp: now.wall.milliseconds)
    let broadcast = BroadcastID(hub: retry.send.hub, send: retry.send.identity)
    unanswered.insert(
      .course(held, broadcast), due: now.uptime + max(0, (retry.notBefore - now.wall).milliseconds))
  }

  /// What room the record takes; nil where nothing of it could be pushed now or soon, or no page has put it off.
  private func room(for retry: RetryRecord, in slot: Int, at now: Moment) -> WorkItem.Returned? {
    guard isOfPage(retry) else { return nil }
    let rate = retry.send.maximumPerSecond
    let soon = now.wall + (rate == nil ? configuration.longestRest : Permits.span)
    var (count, platforms) = (0, PlatformSet())
    for case .waiting(let device) in retry.devices where device.notBefore <= soon {
      let sender = table.sender(hub: items[slot].hub, platform: device.platform)
      guard sender >= 0, mayPush(sender, at: now) else { continue }
      count += 1
      platforms.formUnion(PlatformSet(device.platform))
    }
    guard count > 0 else { return nil }
    let broadcast = rate.map { _ in BroadcastID(hub: retry.send.hub, send: retry.send.identity) }
    return WorkItem.Returned(weight: min(count, rate ?? count), platforms: platforms, rated: broadcast)
  }

  /// Whether it is what a page of a broadcast has put off, rather than what a send in one piece has. What is the only
  /// page of its broadcast, and no larger than such a send, may pass for one.
  func isOfPage(_ retry: RetryRecord) -> Bool {
    retry.send.isBroadcast
      && (retry.parts > 1 || retry.send.maximumPerSecond != nil
        || retry.devices.count + retry.counts.total > configuration.undividedDevices)
  }

  /// Whether the sender may be given anything now.
  func mayPush(_ sender: Int, at now: Moment) -> Bool { senders[sender].gate.allowance(at: now.uptime) > 0 }

  /// Goes on with what pages have put off as far as there is room, and asks when that of broadcasts with a rate may be
  /// pushed.
  mutating func resumeParkedPages(at now: Moment, into effects: inout Effects) {
    while mayResumeParkedPages, devices < configuration.maximumDevices {
      guard let index = nextParkedPage() else {
        mayResumeParkedPages = false
        return
      }
      let next = parkedPages.remove(at: index)
      let slot = next.ticket.slot
      parkedPageBytes -= next.value.count
      guard isOpen(next), let retry = read(next, at: now) else { continue }
      holdRoom(for: retry, in: slot, next.room, at: now)
      guard let rate = retry.send.maximumPerSecond, now.wall < expiry(of: retry.send) else {
        resume(retry, in: slot, at: now, into: &effects)
        continue
      }
      // A second's at most: what every worker reserves at a time is how far ahead of the others the last one is.
      let count = room(for: retry, in: slot, at: now)?.weight ?? 1
      let broadcast = BroadcastID(hub: retry.send.hub, send: retry.send.identity)
      effects.questions.append(.permits(next, count, broadcast, perSecond: rate))
    }
  }

  /// Which of what pages have put off can go on now; nil for none. What goes to a service waits behind all that has
  /// waited for its room before, but for what waits until another part of its own broadcast, which has a rate, is
  /// through.
  private func nextParkedPage() -> Int? {
    var full = [PlatformSet](repeating: [], count: table.hubs.count)
    for (index, next) in parkedPages.enumerated() {
      guard isOpen(next) else { return index }
      if let broadcast = next.room.rated, ratedReturned.contains(broadcast) { continue }
      let hub = items[next.ticket.slot].hub
      if full[hub].isDisjoint(with: next.room.platforms), hasRoom(for: next.room, of: hub) { return index }
      full[hub].formUnion(next.room.platforms)
    }
    return nil
  }

  private func isOpen(_ parked: Parked) -> Bool {
    isCurrent(parked.ticket) && items[parked.ticket.slot].phase == .resolving
  }

  private func hasRoom(for room: WorkItem.Returned, of hub: Int) -> Bool {
    room.platforms.platforms.allSatisfy { platform in
      let returned = senders[SenderTable.place(hub: hub, platform: platform)].returned
      return returned == 0 || returned + room.weight <= configuration.pageDevices
    }
  }

  /// The item takes so much of the room for what pages have put off, until it is gone, unless it does so already: of
  /// each service as much as of all together, even when its last device of that service has its result.
  mutating func holdRoom(for retry: RetryRecord, in slot: Int, _ room: WorkItem.Returned?, at now: Moment) {
    guard items[slot].resumed == nil else { return }
    items[slot].resumed = WorkItem.Resumed(
      part: retry.part, parts: retry.parts, attempt: retry.attempt, deferrals: retry.deferrals,
      cameEarly: cameEarly(retry, at: now), counts: retry.counts)
    guard let room else { return }
    items[slot].role = .returned(room)
    if let broadcast = room.rated { ratedReturned.insert(broadcast) }
    for platform in room.platforms.platforms {
      senders[SenderTable.place(hub: items[slot].hub, platform: platform)].returned += room.weight
    }
  }

  /// Whether it has come back before it should have been released: at its time, or after the longest delay there is,
  /// when only part of its wait is over.
  private func cameEarly(_ retry: RetryRecord, at now: Moment) -> Bool {
    let longestHold = (retry.writtenAt ?? now.wall) + (topics.retries.last?.delay ?? .zero)
    return min(retry.notBefore, longestHold) > now.wall + configuration.longestRest
  }

  /// The room is free again.
  mutating func giveBack(_ room: WorkItem.Returned, of hub: Int) {
    mayResumeParkedPages = true
    if let broadcast = room.rated { ratedReturned.remove(broadcast) }
    for platform in room.platforms.platforms {
      senders[SenderTable.place(hub: hub, platform: platform)].returned -= room.weight
    }
  }

  /// It is known from when on so many devices of what has come back may be pushed to.
  mutating func permitted(_ parked: Parked, _ permits: Permits, at now: Moment, into effects: inout Effects) {
    let slot = parked.ticket.slot
    guard isCurrent(parked.ticket), items[slot].phase == .resolving, let retry = read(parked, at: now) else { return }
    resume(retry, in: slot, permits: permits, at: now, into: &effects)
  }

  /// Gives each device that can be pushed to within the permits' own second its time, as its broadcast's rate allows;
  /// those without a permit come back later and ask again: one that was used later would be used together with others.
  /// So do those whose time is too far ahead to rest here, and, when the outage may be over, those whose sender is
  /// stopped, for it may work again while they rest.
  mutating func space(_ slot: Int, _ permits: Permits, at now: Moment) {
    let shortest = topics.retries.first?.delay ?? Self.shortestHold
    // A moment that seems to be far ahead is that of a clock that was set back.
    let isAhead = permits.from > now.wall + PushQuota.horizon
    let from = now.uptime + (isAhead ? 0 : (permits.from - now.wall).milliseconds)
    let rest = max(now.uptime + shortest.milliseconds, from + Int64(permits.count * 1000 / permits.perSecond))
    let untilProbed = topics.retries.first?.delay ?? configuration.outageProbeInterval
    var number = 0
    for index in items[slot].devices.indices {
      let device = items[slot].devices[index]
      guard device.phase == .queued || device.phase == .resting, device.sender >= 0 else { continue }
      let mayPush = mayPush(device.sender, at: now)
      let isPermitted =
        number < permits.count && mayPush && device.due <= max(now.uptime, from) + Permits.span.milliseconds
      let later = mayPush ? rest : now.uptime + (outageDelay(of: slot, index, at: now) ?? untilProbed).milliseconds
      let due = max(device.due, isPermitted ? from + Int64(number * 1000 / permits.perSecond) : later)
      items[slot].devices[index].due = due
      let isToLeave = !isPermitted || due > now.uptime + configuration.longestRest.milliseconds
      items[slot].devices[index].phase = isToLeave ? .putOff : due > now.uptime ? .resting : .queued
      if isPermitted { number += 1 }
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
          attempts: device.attempts, heldAttempts: device.heldAttempts, waits: device.waits,
          wasUnanswered: device.wasUnanswered,
          firstAttemptAt: device.firstAttemptAt, reason: device.reason, status: device.status,
          contradictions: device.contradictions))
    }
    return RetryRecord(
      send: send, part: part, parts: parts, attempt: attempt, deferrals: deferrals + 1, cameEarly: false,
      devices: devices,
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
        registration: device.registration, platform: device.platform,
        outcome: device.wasUnanswered ? .unconfirmed : .failed,
        reason: device.reason, status: device.status, attempts: device.attempts)
    }
  }
}
