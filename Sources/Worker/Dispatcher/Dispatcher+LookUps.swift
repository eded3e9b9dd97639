import FanfareCore

/// Look-ups: only the registry knows the owner of a device, and owners change while sends wait.
///
/// The guarantee: a push of a send to a user is handed over at most `ownershipWindow` after the request that found the
/// device among that user's. A push that has waited longer is looked up again, and is not sent if the device has
/// another owner. If the registry alone takes longer than the window, the push is handed over when it answers:
/// repeating the look-up would never end. After a registration request has returned, pushes for the previous user can
/// therefore arrive only in three cases: they were already handed over, their look-up was asked within the window
/// before, or it is still open.
///
/// A send to a tag is for the devices that have the tag when it is dispatched, and may have too many to look each up
/// twice. So only two kinds of its pushes are looked up again: repetitions, and first attempts that come later than
/// twice `freshness` after the look-up (devices may wait for `freshness` until they are queued, and as long in the
/// queue). The request asks whether the device is still registered, and was the same user's when the send was accepted.
extension Dispatcher {
  /// How long found devices may wait to be queued before the next look-up, in milliseconds.
  static let freshness: Int64 = 2_000

  /// Puts the next request to the registry if none is open.
  mutating func askRegistry() {
    guard lookUps.mayAsk(at: now.uptime) else { return }
    var lookUp = LookUp(askedAt: now.uptime)
    if lookUps.mayAskSuspect, let suspect = lookUps.popSuspect(of: items, at: now) {
      lookUp = suspect
    } else {
      let batch = lookUps.limit(configuration.limits.lookUpBatch)
      lookUps.addRechecks(to: &lookUp, of: items, batch: batch)
      addItems(to: &lookUp, batch: batch)
    }
    guard !lookUp.entries.isEmpty else { return }
    lookUps.asked()
    effects.lookUp = lookUp
  }

  private mutating func addItems(to lookUp: inout LookUp, batch: Int) {
    while lookUp.queries.count < batch,
      items.held.devices < configuration.limits.maximumDevices,
      let ticket = lookUps.popNew()
    {
      let slot = ticket.slot
      guard items.isResolving(ticket), let send = items[slot].send else { continue }
      guard now.wall < items[slot].expiresAt else {
        settle(slot, as: .expired)
        continue
      }
      lookUp.entries.append(LookUp.Entry(purpose: .devices, ticket: ticket, query: lookUp.queries.count))
      // Only the platforms that the send has content for.
      lookUp.queries.append(AudienceQuery(send))
    }
  }

  /// Handles the registry's answer, or its failure to answer.
  mutating func answer(_ answer: LookUpAnswer) {
    guard let pages = answer.found else { return lookUps.failed(answer.lookUp, at: now.uptime) }
    lookUps.answered()
    var stopped: [Ticket] = []
    // A slow registry's answer counts for this moment only.
    let checkedAt = max(answer.lookUp.askedAt, now.uptime - configuration.times.ownershipWindow.milliseconds)
    for entry in answer.lookUp.entries {
      let found = pages[entry.query]
      switch entry.purpose {
      case .devices where found.last != nil:
        // Too many devices for one item: it is divided like a send to a tag.
        if items.isResolving(entry.ticket) { broadcasts.appendSurvey(entry.ticket) }
      case .devices: receive(found.targets, for: entry.ticket, checkedAt: checkedAt)
      case .recheck:
        if recheck(entry.ticket, against: found, checkedAt: checkedAt) {
          stopped.append(entry.ticket)
        }
      }
    }
    // Back to the head of their queues, in the order they had.
    for ticket in stopped.reversed() where items.phase(of: ticket) == .queued {
      lanes[items[ticket.slot].devices[ticket.device].sender].enqueueFirst(ticket)
    }
  }

  /// Whether the device must be looked up again before it is pushed to.
  func needsRecheck(_ send: SendRequest, checkedAt: Int64, attempts: Int) -> Bool {
    guard checkedAt != DeviceProgress.never else { return true }
    guard now.uptime - checkedAt > configuration.times.ownershipWindow.milliseconds else { return false }
    return switch send.audience {
    // The caller named the address itself; its owner does not matter.
    case .device: false
    case .user, .registration: true
    case .tag, .tags, .expression, .everyone:
      attempts > 0 || !send.isBroadcast || now.uptime - checkedAt > 2 * Self.freshness
    }
  }

  /// Handles the devices found for an item.
  mutating func receive(_ targets: [Target], for ticket: Ticket, checkedAt: Int64) {
    let slot = ticket.slot
    guard items.isResolving(ticket), let send = items[slot].send else { return }
    items[slot].lookedUp(at: now.wall)
    if items[slot].isTraced { traces.found(slot, devices: targets.count, at: now.wall) }
    var targets = targets
    var isRegistered = true
    // A device that is not registered has no template to render the send from.
    if case .device(let platform, let handle) = send.audience, targets.isEmpty, send.content.template == nil,
      send.coveredPlatforms.contains(platform)
    {
      isRegistered = false
      targets = [UnregisteredDevice.target(hub: send.hub, platform: platform, handle: handle, at: now.wall)]
    }
    guard !targets.isEmpty else { return settle(slot, as: .noTarget) }
    // A ticket has no room for more than 16 million devices of one send.
    guard targets.count <= Ticket.maximumDevices else { return lookUps.refuse(ticket, at: now.uptime) }
    let hub = items[slot].hub
    items.dispatch(
      slot,
      targets.map {
        DeviceProgress(
          target: $0, sender: table.sender(hub: hub, platform: $0.platform), isRegistered: isRegistered,
          checkedAt: checkedAt)
      })
    begin(items[slot].devices.indices, of: slot)
  }

  /// Pushes to a device whose owner is confirmed.
  /// Returns true if the push is to be queued again because its platform was stopped meanwhile or its quota has lapsed.
  private mutating func recheck(_ ticket: Ticket, against page: AudiencePage, checkedAt: Int64) -> Bool {
    guard let device = items.device(ticket), device.phase == .checking else { return false }
    let (slot, index, sender, targets) = (ticket.slot, ticket.device, device.sender, page.targets)
    if page.last != nil, !targets.contains(where: { $0.registration == device.target.registration }) {
      // The user has more devices than were looked up: this one may be among the others.
      lookUps.appendRecheck(ticket, isAlone: true)
      return false
    }
    lanes.endCheck(ticket, of: sender)
    defer { endProbe(ticket, of: sender) }
    if items[slot].isPage, let page = broadcasts[page: slot] {
      if page.isPaused {
        // It is queued when the page continues.
        items[slot][device: index].enqueue()
        return false
      }
      if page.state == .cut, device.history.attempts == 0 {
        items[slot].withdraw(index)
        return false
      }
    }
    var known = targets.first { $0.registration == device.target.registration && $0.platform == device.target.platform }
    if known == nil, let send = items[slot].send, case .device(let platform, let handle) = send.audience {
      // The caller named the address itself; whether and how it is registered by now does not matter.
      switch send.content.template?.source {
      case nil:
        known =
          targets.first ?? UnregisteredDevice.target(hub: send.hub, platform: platform, handle: handle, at: now.wall)
      case .hub: known = targets.first
      // Other templates of the device have pushes of their own.
      case .devices: break
      }
    }
    guard let target = known else {
      finish(slot, index, as: .rejected, reason: "NoLongerRegistered", status: device.status)
      return false
    }
    items[slot][device: index].found(target, checkedAt: checkedAt)
    let isStopped = lanes[sender].isStopped
    guard !isStopped || lanes[sender].probe == ticket, lanes[sender].allowsPush(at: now) else {
      if isStopped { passFirstAttempt(slot, index) }
      return true
    }
    submit(ticket)
    spendQuota(of: sender, for: ticket)
    return false
  }
}
