import DequeModule
import FanfareCore
import RDKafka

extension DispatchState {
  /// How long what was found may wait for its turn before it is looked up again.
  static let freshness: Int64 = 2_000

  /// Does with an open page what is wanted of its broadcast.
  mutating func follow(_ course: BroadcastControl.State, _ slot: Int) {
    guard items[slot].phase == .dispatching, var page = items[slot].page else { return }
    switch course {
    case .running:
      guard page.isParked else { return }
      (page.isParked, page.isLeaving) = (false, false)
      items[slot].page = page
      for (index, device) in items[slot].devices.enumerated() where device.phase == .queued {
        // Whose it is by now is another question.
        items[slot].devices[index].checkedAt = DeviceProgress.never
        enqueue(slot, index, for: device.sender)
      }
    case .paused:
      guard !page.isParked, !page.isCut else { return }
      page.isParked = true
      page.forgetFound()
      items[slot].page = page
      recall(slot)
    case .cancelled:
      guard !page.isCut else { return }
      page.isCut = true
      (page.isParked, page.isLeaving) = (false, false)
      page.slice = nil
      page.found = []
      page.taken = 0
      items[slot].page = page
      recall(slot)
      for (index, device) in items[slot].devices.enumerated()
      where device.phase == .queued && device.history.attempts == 0 {
        // Nobody has heard of it, and nobody will.
        items[slot].devices[index].phase = .withdrawn
        items[slot].openDevices -= 1
      }
      for (index, device) in items[slot].devices.enumerated() where device.phase == .queued {
        enqueue(slot, index, for: device.sender)
      }
    }
  }

  /// Has what is left of a paused page put off: its devices would take the room of everything else for as long as the
  /// pause lasts. What would not live until it comes back stays.
  mutating func leave(_ slot: Int, at now: Moment, into effects: inout Effects) {
    guard items[slot].page?.isLeaving == false, let delay = topics.retries.first?.delay,
      now.wall + delay + RetryPump.lateness(of: delay) < items[slot].expiresAt
    else { return }
    items[slot].page?.isLeaving = true
    putOffWhatIsLeft(of: slot, at: now, into: &effects)
  }

  /// Puts off what has been answered, or looked up, of the pages that leave since they began to.
  mutating func putOffWhatIsLeaving(at now: Moment, into effects: inout Effects) {
    for ticket in pages where isCurrent(ticket) && items[ticket.slot].page?.isLeaving == true {
      putOffWhatIsLeft(of: ticket.slot, at: now, into: &effects)
    }
  }

  private mutating func putOffWhatIsLeft(of slot: Int, at now: Moment, into effects: inout Effects) {
    guard let broadcast = items[slot].broadcast else { return }
    let delay = delay(ofPaused: broadcast, until: items[slot].expiresAt, at: now)
    for index in items[slot].devices.indices {
      switch items[slot].devices[index].phase {
      case .queued, .resting: putOff(slot, index, for: delay, at: now, into: &effects)
      case .checking, .inFlight, .waiting, .done, .putOff, .withdrawn: break
      }
    }
  }

  /// Takes the item's pushes out of the queues of their senders.
  private mutating func recall(_ slot: Int) {
    let ticket = ticket(slot)
    for sender in senders.indices {
      for waiting in senders[sender].queue.removeAll()
      where waiting.slot != ticket.slot || waiting.generation != ticket.generation {
        senders[sender].queue.append(waiting)
      }
    }
  }

  /// Looks up what a page goes on with, and, where it is its turn, hands devices to the queues of their senders, and
  /// ends the page after the last one.
  mutating func goOn(_ slot: Int, _ turn: PageTurn, at now: Moment, into effects: inout Effects) {
    guard var page = items[slot].page, let send = items[slot].send else { return }
    var room =
      switch turn {
      case .none: 0
      // What has a rate does not hurry.
      case .headStart(let devices): send.maximumPerSecond == nil ? max(0, devices - page.devices) : 0
      case .whole: Int.max
      }
    room = min(room, max(0, 2 * configuration.maximumBulkPushesPerSender - items[slot].openDevices))
    if page.waiting > 0, now.uptime - page.checkedAt > Self.freshness {
      // Its turn may be long in coming: it is looked up again then. Where pages take as long as that a head start would
      // win nothing.
      guard turn == .whole else { return }
      page.forgetFound()
    }
    if turn == .whole || room > 0 { take(&page, slot, send, room: room, at: now, into: &effects) }
    if let slice = page.slice, !page.isLookingUp, page.waiting == 0 {
      page.isLookingUp = true
      let query = AudienceQuery(hub: send.hub, audience: send.audience, platforms: send.coveredPlatforms)
      effects.questions.append(
        .page(ticket(slot), query, slice, createdBefore: send.acceptedAt, askedAt: now.uptime))
    }
    items[slot].page = page
    if turn == .whole, page.isExhausted, items[slot].openDevices == 0 {
      settlePage(slot, page, send, at: now, into: &effects)
    }
  }

  /// What the page behind this one may do, once the last device of this one has been handed to its sender: a page and
  /// the head start of the next are `pageDevices` at most, however large the page has turned out to be. What waits for
  /// a quota is not looked at: a page of which only that is left has no turn itself.
  func turn(behind slot: Int, at now: Moment) -> PageTurn {
    guard let page = items[slot].page, page.isExhausted,
      senders.allSatisfy({ !$0.queue.hasBulk || $0.quota.isDry(at: now.wall) })
    else { return .none }
    return .headStart(min(configuration.headStart, max(0, configuration.pageDevices - page.devices)))
  }

  /// Makes devices of the item of what was found, as many as there is room for.
  private mutating func take(
    _ page: inout OpenPage, _ slot: Int, _ send: SendRequest, room: Int, at now: Moment, into effects: inout Effects
  ) {
    var room = room
    let delay = page.isLeaving ? delay(ofPaused: page.broadcast, until: items[slot].expiresAt, at: now) : nil
    // What has expired is not pushed, and so need not wait.
    if let rate = send.maximumPerSecond, now.wall < items[slot].expiresAt, delay == nil {
      reserve(&page, slot, rate: rate, at: now, into: &effects)
      room = min(room, page.permits)
    }
    let count = min(page.waiting, room)
    guard count > 0 else { return }
    page.permits -= min(page.permits, count)
    let first = items[slot].devices.count
    for target in page.found[page.taken..<page.taken + count] {
      items[slot].devices.append(
        DeviceProgress(
          target: target, sender: table.sender(hub: items[slot].hub, platform: target.platform), isRegistered: true,
          checkedAt: page.checkedAt))
    }
    page.taken += count
    page.devices += count
    // All are open before the first can be closed.
    items[slot].openDevices += count
    items[slot].openFirstAttempts += count
    devices += count
    for index in first..<first + count {
      let sender = items[slot].devices[index].sender
      if sender < 0 {
        finish(slot, index, as: .failed, reason: "NoSender", status: 0, at: now, into: &effects)
      } else if let delay {
        putOff(slot, index, for: delay, at: now, into: &effects)
      } else {
        enqueue(slot, index, for: sender)
      }
    }
  }

  /// Asks for the next pushes that the broadcast's rate allows, a quarter of a second's at most, and takes what has
  /// become due.
  private func reserve(_ page: inout OpenPage, _ slot: Int, rate: Int, at now: Moment, into effects: inout Effects) {
    if let reserved = page.reserved {
      if reserved.from <= now.wall { page.permits += reserved.count }
      if reserved.from <= now.wall || reserved.from > now.wall + PushQuota.horizon { page.reserved = nil }
    }
    guard page.permits == 0, page.reserved == nil, !page.isReserving, page.waiting > 0 else { return }
    page.isReserving = true
    effects.questions.append(
      .reserve(ticket(slot), min(page.waiting, max(1, rate / 4)), page.broadcast, perSecond: rate))
  }

  /// It is known which devices a page goes on with.
  mutating func found(
    _ ticket: Ticket, _ found: AudiencePage, in slice: RegistrationSlice, askedAt: Int64, at now: Moment
  ) {
    guard isCurrent(ticket), var page = items[ticket.slot].page, page.isLookingUp else { return }
    page.isLookingUp = false
    // What was paused or cancelled meanwhile has no use for it.
    if !page.isCut, !page.isParked || page.isLeaving {
      page.found = found.targets
      page.taken = 0
      // The answer of a slow registry is good for this moment: asking again would never end.
      page.checkedAt = max(askedAt, now.uptime - Self.freshness)
      page.slice = found.last.flatMap { slice.after($0) }
    }
    items[ticket.slot].page = page
  }

  /// It is known from when on so many devices may be taken.
  mutating func reserved(_ ticket: Ticket, _ count: Int, from moment: UnixTime) {
    guard isCurrent(ticket), var page = items[ticket.slot].page else { return }
    page.isReserving = false
    page.reserved = (count, moment)
    items[ticket.slot].page = page
  }

  /// Every device of the page has its result, or is put off: writes what became of it. Devices that got it are counted,
  /// the others listed.
  private mutating func settlePage(
    _ slot: Int, _ page: OpenPage, _ send: SendRequest, at now: Moment, into effects: inout Effects
  ) {
    var counts = OutcomeCounts()
    var listed: [DeviceProgress] = []
    for device in items[slot].devices {
      switch device.phase {
      case .withdrawn: break
      case .done where device.outcome == .delivered: counts.add(1, to: .init(device.target.platform, .delivered))
      case .done, .putOff, .queued, .checking, .inFlight, .resting, .waiting: listed.append(device)
      }
    }
    watchFailures(of: page, delivered: counts.total, listed: listed, into: &effects)
    items[slot].phase = .settling
    items[slot].unacknowledged = 1
    if listed.contains(where: { $0.phase == .putOff }) {
      let retry = retryRecord(
        of: listed[...], counts: counts, send: send, part: page.number, parts: page.pages,
        attempt: page.pages > 1 ? SegmentRecord.attempt(of: send) : nil,
        deferrals: 1, cameEarly: false, at: now)
      produce(retry, for: slot, at: now, into: &effects)
    } else {
      let isEmpty = listed.isEmpty && counts.isEmpty
      produce(
        page: page.number, of: page.pages, of: send, as: page.isCut ? .cancelled : isEmpty ? .noTarget : .settled,
        devices: listed.map(\.result), counts: counts, for: slot, at: now, into: &effects)
    }
    effects.tallies.pages.append(items[slot].hub)
    devices -= items[slot].devices.count
    items[slot].devices = []
    items[slot].renderings = []
    items[slot].send = nil
  }

  /// Pauses a broadcast of which too much fails: what is wrong with it is better mended than repeated a million times.
  private func watchFailures(of page: OpenPage, delivered: Int, listed: [DeviceProgress], into effects: inout Effects) {
    let failed = listed.count { device in
      guard device.phase == .done else { return false }
      return switch device.outcome {
      case .failed, .rejected, .unconfirmed: true
      case .delivered, .deviceGone, .expired: false
      }
    }
    let all = delivered + listed.count
    guard all >= configuration.broadcastFailureSample,
      Double(failed) > Double(all) * configuration.broadcastFailureShare
    else {
      return
    }
    effects.questions.append(.steer(page.broadcast, BroadcastControl(.paused, because: .failures)))
    effects.alarm(.broadcastPaused(page.broadcast, failed: failed, of: all))
  }

  /// Writes the status record of a page.
  func produce(
    page: Int, of pages: Int, of send: SendRequest, as state: StatusRecord.State, devices: [DeviceResult],
    counts: OutcomeCounts,
    attempt: AttemptID? = nil, for slot: Int, at now: Moment, into effects: inout Effects
  ) {
    let attempt = attempt ?? (pages > 1 ? SegmentRecord.attempt(of: send) : nil)
    let status = StatusRecord(
      send: send.id, hub: send.hub, part: page, parts: pages, attempt: attempt,
      state: state, sender: send.sender, audience: send.audience, acceptedAt: send.acceptedAt, settledAt: now.wall,
      devices: devices, counts: counts, traceparent: send.traceparent)
    effects.productions.append(
      Production(kind: .page, ticket: ticket(slot)),
      ProducerRecord(topic: topics.status, key: Array(send.id.description.utf8), event: status.encoded()))
  }
}
