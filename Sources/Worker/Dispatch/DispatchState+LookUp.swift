import DequeModule
import FanfareCore

/// Who a device belongs to is the registry's knowledge, and it changes while sends wait.
///
/// What is guaranteed: a push of a send to a user is handed to its sender at most `ownershipWindow` after the look-up
/// was asked that found the device among that user's; one that waited longer, in a queue or for a repetition, is looked
/// up again first, and is not sent when the device has gone to somebody else. Where the registry alone takes longer
/// than the window, the push is handed over in the moment it answers: asking again would never end. So once a
/// registration has returned, pushes for the previous user can still arrive only if they were with the sender by then,
/// or a look-up for them was asked within the window before, or is still open.
///
/// A send to a tag is for whoever carries the tag when it is dispatched, and its devices may be too many to ask for
/// twice. For repetitions, and where the first attempt comes more than twice `freshness` after the look-up, they are
/// looked up again all the same: so long they may wait to get into a queue, and as long again in it. It is asked
/// whether they are still registered, and still the user's who had them when the send was accepted.
extension DispatchState {
  /// Puts the next question to the registry, if none is open: first for what is looked up again, since a place among
  /// the pushes is reserved for each, and then for sends that are new.
  mutating func askRegistry(at now: Moment, into effects: inout Effects) {
    guard !isLookingUp, now.uptime >= lookUpNotBefore else { return }
    var lookUp = LookUp(askedAt: now.uptime)
    addRechecks(to: &lookUp)
    addItems(to: &lookUp, at: now, into: &effects)
    guard !lookUp.entries.isEmpty else { return }
    isLookingUp = true
    effects.lookUp = lookUp
  }

  /// The registry has answered, or could not be asked: then the same is asked again after a delay that grows.
  mutating func answer(_ answer: LookUpAnswer, at now: Moment, into effects: inout Effects) {
    isLookingUp = false
    guard let targets = answer.targets else {
      lookUpNotBefore = now.uptime + min(5000, 100 << Int64(min(failedLookUps, 6)))
      failedLookUps += 1
      for entry in answer.lookUp.entries.reversed() {
        switch entry.purpose {
        case .devices: toResolve.prepend(entry.ticket)
        case .recheck: toRecheck.prepend(entry.ticket)
        }
      }
      return
    }
    failedLookUps = 0
    var stopped: [Ticket] = []
    // The answer of a slow registry is good for this moment, and no longer.
    let checkedAt = max(answer.lookUp.askedAt, now.uptime - configuration.ownershipWindow.milliseconds)
    for entry in answer.lookUp.entries {
      let found = targets[entry.query]
      switch entry.purpose {
      case .devices: receive(found, for: entry.ticket, checkedAt: checkedAt, at: now, into: &effects)
      case .recheck:
        recheck(entry.ticket, against: found, checkedAt: checkedAt, stopped: &stopped, at: now, into: &effects)
      }
    }
    // Back to the head of their queues, in the order they had.
    for ticket in stopped.reversed() {
      guard let device = device(ticket), device.phase == .queued else { continue }
      senders[device.sender].queue.prepend(ticket)
    }
  }

  /// Whether a device last looked up at that uptime, to which the send was sent so often, must be looked up again
  /// before it is sent to.
  func needsRecheck(_ send: SendRequest, checkedAt: Int64, attempts: Int, at now: Moment) -> Bool {
    guard checkedAt != DeviceProgress.never else { return true }
    guard now.uptime - checkedAt > configuration.ownershipWindow.milliseconds else { return false }
    return switch send.audience {
    // The caller named the address itself; whose it is does not matter.
    case .device: false
    case .user, .registration: true
    case .tag, .tags, .expression, .everyone:
      attempts > 0 || !send.isBroadcast || now.uptime - checkedAt > 2 * Self.freshness
    }
  }

  private mutating func addRechecks(to lookUp: inout LookUp) {
    var last: (slot: Int, query: Int)?
    // A quarter stays for sends that are new, however many wait to be asked for again.
    let most = configuration.lookUpBatch - (toResolve.isEmpty ? 0 : configuration.lookUpBatch / 4)
    while lookUp.queries.count < most, let ticket = toRecheck.popFirst() {
      guard let device = device(ticket), device.phase == .checking, let send = items[ticket.slot].send else { continue }
      let isForOneUser = !send.isBroadcast
      if isForOneUser, let last, last.slot == ticket.slot {
        lookUp.entries.append(LookUp.Entry(purpose: .recheck, ticket: ticket, query: last.query))
        continue
      }
      // Of a tag's many devices only the one is asked for; of a user's few all, because only that shows whose the
      // device is.
      let audience = isForOneUser ? send.audience : .registration(device.target.registration)
      last = (ticket.slot, lookUp.queries.count)
      lookUp.entries.append(LookUp.Entry(purpose: .recheck, ticket: ticket, query: lookUp.queries.count))
      // One answer serves all devices of a user, whatever their platforms.
      let platforms = isForOneUser ? send.coveredPlatforms : PlatformSet(device.target.platform)
      lookUp.queries.append(
        AudienceQuery(
          hub: send.hub, audience: audience, platforms: platforms, createdBefore: isForOneUser ? nil : send.acceptedAt))
    }
  }

  private mutating func addItems(to lookUp: inout LookUp, at now: Moment, into effects: inout Effects) {
    var weight = lookUp.queries.count
    while weight < configuration.lookUpBatch, devices < configuration.maximumDevices, let ticket = toResolve.popFirst()
    {
      let slot = ticket.slot
      guard isCurrent(ticket), items[slot].phase == .resolving, let send = items[slot].send else { continue }
      guard now.wall < items[slot].expiresAt else {
        settle(slot, as: .expired, at: now, into: &effects)
        continue
      }
      // A device for whose platform the send holds nothing to show is none of its devices.
      let query = AudienceQuery(hub: send.hub, audience: send.audience, platforms: send.coveredPlatforms)
      lookUp.entries.append(LookUp.Entry(purpose: .devices, ticket: ticket, query: lookUp.queries.count))
      lookUp.queries.append(query)
      weight += 1
    }
  }

  /// The devices of an item are known.
  mutating func receive(
    _ targets: [Target], for ticket: Ticket, checkedAt: Int64, at now: Moment, into effects: inout Effects
  ) {
    let slot = ticket.slot
    guard isCurrent(ticket), items[slot].phase == .resolving, let send = items[slot].send else { return }
    var targets = targets
    var isRegistered = true
    if case .device(let platform, let handle) = send.audience, targets.isEmpty, send.coveredPlatforms.contains(platform)
    {
      isRegistered = false
      targets = [UnregisteredDevice.target(hub: send.hub, platform: platform, handle: handle, at: now.wall)]
    }
    guard !targets.isEmpty else { return settle(slot, as: .noTarget, at: now, into: &effects) }
    guard targets.count <= Ticket.maximumDevices else {
      // More than 16 million devices of one send cannot be counted here; the item is asked for again and again,
      // visibly, until it expires.
      failedLookUps += 1
      lookUpNotBefore = now.uptime + 5000
      toResolve.append(ticket)
      return
    }
    let hub = items[slot].hub
    items[slot].phase = .dispatching
    items[slot].openDevices = targets.count
    items[slot].openFirstAttempts = targets.count
    items[slot].devices = targets.map {
      DeviceProgress(
        target: $0, sender: table.sender(hub: hub, platform: $0.platform), isRegistered: isRegistered,
        checkedAt: checkedAt)
    }
    devices += targets.count
    var unreachable: [Int] = []
    for index in targets.indices {
      let sender = items[slot].devices[index].sender
      if sender >= 0 { enqueue(slot, index, for: sender) } else { unreachable.append(index) }
    }
    for index in unreachable {
      finish(slot, index, as: .failed, reason: "NoSender", status: 0, at: now, into: &effects)
    }
  }

  /// It is known whose the device is now. If its sender was stopped meanwhile, or what was reserved of its quota
  /// lapsed, the ticket goes to `stopped`.
  private mutating func recheck(
    _ ticket: Ticket, against targets: [Target], checkedAt: Int64, stopped: inout [Ticket], at now: Moment,
    into effects: inout Effects
  ) {
    guard let device = device(ticket), device.phase == .checking else { return }
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = device.sender
    releasePlace(of: sender, for: ticket)
    senders[sender].checking -= 1
    defer { endProbe(ticket, of: sender) }
    if let page = items[slot].page, page.isParked || (page.isCut && device.history.attempts == 0) {
      // Called back meanwhile: it gets into its queue when the page goes on, and where it does not, nobody ever hears
      // of it.
      items[slot].devices[index].phase = page.isParked ? .queued : .withdrawn
      if page.isCut { items[slot].openDevices -= 1 }
      return
    }
    var known = targets.first { $0.registration == device.target.registration && $0.platform == device.target.platform }
    if known == nil, case .device(let platform, let handle)? = items[slot].send?.audience,
      let hub = items[slot].send?.hub
    {
      // The caller named the address itself; whether, and as what, it is registered by now does not matter.
      known = targets.first ?? UnregisteredDevice.target(hub: hub, platform: platform, handle: handle, at: now.wall)
    }
    guard let target = known else {
      return finish(
        slot, index, as: .rejected, reason: "NoLongerRegistered", status: device.status, at: now, into: &effects)
    }
    items[slot].devices[index].target = target
    items[slot].devices[index].checkedAt = checkedAt
    items[slot].devices[index].phase = .queued
    let isStopped = senders[sender].gate.state != .closed
    if !isStopped || senders[sender].probe == ticket, senders[sender].quota.allowsPush(at: now.wall) {
      submit(ticket, at: now, into: &effects)
      spendQuota(of: sender, for: ticket)
    } else {
      stopped.append(ticket)
      if isStopped { passFirstAttempt(slot, index) }
    }
  }
}
