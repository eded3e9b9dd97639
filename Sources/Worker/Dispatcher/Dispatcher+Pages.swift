import DequeModule
import FanfareCore
import RDKafka

/// The devices of an open page: looked up, pushed, and reported.
extension Dispatcher {
  /// Applies the control of its broadcast to an open page.
  mutating func follow(_ control: BroadcastControl.State, _ slot: Int) {
    guard items[slot].phase == .dispatching, let state = broadcasts[page: slot]?.state else { return }
    switch control {
    case .running:
      guard state == .paused || state == .leaving else { return }
      broadcasts[page: slot]?.run()
      for index in items[slot].devices.indices where items[slot].devices[index].phase == .queued {
        // It may have another owner by now.
        items[slot][device: index].forgetLookUp()
        enqueue(slot, index)
      }
    case .paused:
      guard state == .running else { return }
      broadcasts[page: slot]?.pause()
      recall(slot)
    case .cancelled:
      guard state != .cut else { return }
      broadcasts[page: slot]?.cut()
      recall(slot)
      for index in items[slot].devices.indices where items[slot].devices[index].phase == .queued {
        if items[slot].devices[index].history.attempts == 0 { items[slot].withdraw(index) }
      }
      for index in items[slot].devices.indices where items[slot].devices[index].phase == .queued {
        enqueue(slot, index)
      }
    }
  }

  /// Takes the item's pushes out of the queues.
  private mutating func recall(_ slot: Int) {
    let ticket = items.ticket(slot)
    for sender in lanes.indices {
      for waiting in lanes[sender].takeQueue()
      where waiting.slot != ticket.slot || waiting.generation != ticket.generation {
        lanes[sender].enqueue(waiting)
      }
    }
  }

  /// Defers the rest of a paused page: its devices would take the room of all others during the
  /// pause. A page that would expire before it returns stays.
  mutating func leave(_ slot: Int) {
    guard broadcasts[page: slot]?.state == .paused, deferral.backAgain(at: now) < items[slot].expiresAt else {
      return
    }
    broadcasts[page: slot]?.leave()
    deferRest(of: slot)
  }

  /// Defers the devices of leaving pages that have since been answered or looked up.
  mutating func deferLeavingPages() {
    for ticket in broadcasts.openPages
    where items.isCurrent(ticket) && broadcasts[page: ticket.slot]?.state == .leaving {
      deferRest(of: ticket.slot)
    }
  }

  private mutating func deferRest(of slot: Int) {
    guard let broadcast = broadcasts.broadcast(of: slot) else { return }
    let delay = deferral.delay(ofPaused: broadcast, until: items[slot].expiresAt, at: now)
    for index in items[slot].devices.indices {
      switch items[slot].devices[index].phase {
      case .queued, .resting: deferDevice(slot, index, for: delay)
      case .checking, .inFlight, .done, .deferred, .withdrawn: break
      }
    }
  }

  /// Looks up the next devices of a page, queues them if it is its turn, and ends an exhausted
  /// page.
  mutating func goOn(_ slot: Int, _ turn: PageTurn) {
    guard var page = broadcasts[page: slot], let send = items[slot].send else { return }
    var room =
      switch turn {
      case .none: 0
      // A broadcast with a rate needs no head start.
      case .headStart(let devices): send.maximumPerSecond == nil ? max(0, devices - page.devices) : 0
      case .whole: Int.max
      }
    room = min(room, max(0, 2 * configuration.broadcasts.maximumBroadcastPushesPerSender - items[slot].openDevices))
    if page.waiting > 0, now.uptime - page.checkedAt > Self.freshness {
      // Its turn may come late: it is looked up again then. When pages take that long, a head start would gain nothing.
      guard turn == .whole else { return }
      page.forgetFound()
    }
    if turn == .whole || room > 0 { take(&page, slot, send, room: room) }
    if let slice = page.beginLookUp() {
      let query = AudienceQuery(send)
      // What waits for the rate for longer than `freshness` is looked up again.
      let limit = send.maximumPerSecond.map { max(100, $0 * 2) } ?? Int.max
      effects.questions.append(
        .page(
          items.ticket(slot), query, slice, createdBefore: send.acceptedAt,
          limit: min(configuration.broadcasts.lookUpPage, limit), askedAt: now.uptime))
    }
    broadcasts[page: slot] = page
    if turn == .whole, page.isExhausted, items[slot].openDevices == 0 {
      settlePage(slot, page, send)
    }
  }

  /// What the next page may do after the last device of this one was handed over.
  /// A page and the head start of the next are at most `pageDevices`. Pushes that wait for a quota do not count: a page
  /// with no others left has no turn itself.
  func nextTurn(behind slot: Int) -> PageTurn {
    guard let page = broadcasts[page: slot], page.isExhausted,
      lanes.allSatisfy({ !$0.hasQueuedBroadcast || $0.quota.isDry(at: now.wall) })
    else { return .none }
    return .headStart(
      min(configuration.broadcasts.headStart, max(0, configuration.broadcasts.pageDevices - page.devices)))
  }

  /// Takes as many of the found devices into the item as there is room for.
  private mutating func take(_ page: inout OpenPage, _ slot: Int, _ send: SendRequest, room: Int) {
    var room = room
    let delay =
      page.state == .leaving
      ? deferral.delay(ofPaused: page.broadcast, until: items[slot].expiresAt, at: now) : nil
    // An expired page is not pushed, so it need not wait for its rate.
    if let rate = send.maximumPerSecond, now.wall < items[slot].expiresAt, delay == nil {
      if let permits = page.requestPermits(rate: rate, at: now) {
        effects.questions.append(.reserve(items.ticket(slot), permits, page.broadcast, perSecond: rate))
      }
      room = min(room, page.permits.count)
    }
    let count = min(page.waiting, room)
    guard count > 0 else { return }
    let (first, hub, checkedAt) = (items[slot].devices.count, items[slot].hub, page.checkedAt)
    let devices = page.take(count).map { target in
      DeviceProgress(
        target: target, sender: table.sender(hub: hub, platform: target.platform), isRegistered: true,
        checkedAt: checkedAt)
    }
    // All are open before the first one can be closed.
    items.add(slot, devices)
    for index in first..<first + count {
      if items[slot].devices[index].sender < 0 {
        deferUnserved(slot, index)
      } else if let delay {
        deferDevice(slot, index, for: delay)
      } else {
        enqueue(slot, index)
      }
    }
  }

  /// Writes the page's status or retry record after every device has its result or is deferred.
  /// Devices that got the push are counted, the others listed.
  private mutating func settlePage(_ slot: Int, _ page: OpenPage, _ send: SendRequest) {
    var counts = OutcomeCounts()
    var listed: [DeviceProgress] = []
    for device in items[slot].devices {
      switch device.phase {
      case .withdrawn: break
      case .done where device.outcome == .delivered: counts.add(1, to: .init(device.target.platform, .delivered))
      case .done, .deferred, .queued, .checking, .inFlight, .resting: listed.append(device)
      }
    }
    watchFailures(of: page, delivered: counts.total, listed: listed)
    let part = pagePart(StatusPart(part: page.number, parts: page.pages, counts: counts), of: send)
    let traceparent = items[slot].isTraced ? traces.traceparent(of: slot) : nil
    let isDeferred = listed.contains { $0.phase == .deferred }
    let isEmpty = listed.isEmpty && counts.isEmpty
    let state: StatusRecord.State = page.state == .cut ? .cancelled : isEmpty ? .noTarget : .settled
    if items[slot].isTraced { endTrace(slot, of: send, as: isDeferred ? nil : state) }
    let times = items[slot].times
    items.settle(slot, records: 1)
    if isDeferred {
      let retry = RetryRecord(listed[...], of: send, part, deferrals: 1, times: times, at: now)
      produce(retry, for: slot)
    } else {
      let status = StatusRecord(
        of: send, as: state, part, devices: listed.map(\.result), at: now.wall, traceparent: traceparent,
        times: times)
      produce(status, of: .page, for: slot)
    }
    effects.tallies.pages.append(items[slot].hub)
  }

  /// Pauses a broadcast if too many of its pushes fail, so that a fault is not repeated a million
  /// times.
  private mutating func watchFailures(of page: OpenPage, delivered: Int, listed: [DeviceProgress]) {
    let failed = listed.count { device in
      guard device.phase == .done else { return false }
      return switch device.outcome {
      case .failed, .rejected, .unconfirmed: true
      case .delivered, .deviceGone, .expired: false
      }
    }
    let all = delivered + listed.count
    guard all >= configuration.broadcasts.broadcastFailureSample,
      Double(failed) > Double(all) * configuration.broadcasts.broadcastFailureShare
    else { return }
    effects.questions.append(.change(page.broadcast, BroadcastControl(.paused, because: .failures)))
    effects.alarm(.broadcastPaused(page.broadcast, failed: failed, of: all))
  }
}
