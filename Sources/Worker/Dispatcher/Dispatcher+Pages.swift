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
      let first = items[slot].devices.count
      items.add(slot, (broadcasts[page: slot]?.cut() ?? []).map(\.recalled))
      recall(slot)
      for index in items[slot].devices.indices { cut(slot, index, isNew: index >= first) }
    }
  }

  /// Ends a device of a cancelled page that is in no queue, or queues it again. `isNew`: the page had not taken it.
  private mutating func cut(_ slot: Int, _ index: Int, isNew: Bool) {
    let device = items[slot].devices[index]
    switch device.phase {
    case .done where isNew: closeDevice(slot)
    case .queued where device.history.attempts == 0: items[slot].withdraw(index)
    case .queued where isNew:
      finish(
        slot, index, as: device.history.wasUnanswered ? .unconfirmed : .failed, reason: device.reason,
        status: device.status)
    case .queued: enqueue(slot, index)
    case .checking, .inFlight, .resting, .done, .deferred, .withdrawn: break
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
    deferPaused(slot)
  }

  /// Defers the devices of leaving pages that have since been answered or looked up, and those of deferred records
  /// whose turn is far away: the positions of their partitions stand still.
  mutating func deferLeavingPages() {
    let soon = now.wall + configuration.times.longestRest
    for ticket in broadcasts.openPages where items.isCurrent(ticket) {
      guard items[ticket.slot].phase == .dispatching, let page = broadcasts[page: ticket.slot] else { continue }
      if page.state == .leaving {
        deferPaused(ticket.slot)
      } else if page.isReturned, partitions.spans.isFarBehind || page.permittedFrom.map({ $0 > soon }) == true {
        let delay = max(deferral.shortest, page.permittedFrom.map { $0 - now.wall } ?? .zero)
        if deferral.backAgain(at: now) < items[ticket.slot].expiresAt { deferRest(of: ticket.slot, for: delay) }
      }
    }
  }

  private mutating func deferPaused(_ slot: Int) {
    guard let broadcast = broadcasts.broadcast(of: slot) else { return }
    deferRest(of: slot, for: deferral.delay(ofPaused: broadcast, until: items[slot].expiresAt, at: now))
  }

  private mutating func deferRest(of slot: Int, for delay: Duration) {
    for index in items[slot].devices.indices {
      switch items[slot].devices[index].phase {
      case .queued: deferDevice(slot, index, for: delay)
      case .resting:
        deferDevice(slot, index, for: max(delay, .milliseconds(items[slot].devices[index].due - now.uptime)))
      case .checking, .inFlight, .done, .deferred, .withdrawn: break
      }
    }
    takeRest(of: slot, deferredFor: delay)
  }

  /// Defers the devices of a page that it has not taken yet.
  mutating func takeRest(of slot: Int, deferredFor delay: Duration) {
    guard let count = broadcasts[page: slot]?.waiting, count > 0 else { return }
    take(count, slot, deferredFor: delay)
  }

  /// Looks up the next devices of a page, pushes to those found (nil: all; otherwise at most `limit`), and ends an
  /// exhausted page.
  mutating func goOn(_ slot: Int, limit: Int?) {
    guard let page = broadcasts[page: slot], let send = items[slot].send else { return }
    if page.waiting > 0, now.uptime - page.checkedAt > Self.freshness {
      // Its turn may come late: it is looked up again then. When pages take that long, a head start would gain nothing.
      guard limit == nil else { return }
      broadcasts[page: slot]?.forgetFound()
    }
    let places = max(0, 2 * configuration.broadcasts.maximumBroadcastPushesPerSender - items[slot].openDevices)
    if limit != 0 { takePermitted(slot, send, room: min(limit ?? .max, places)) }
    if let slice = broadcasts[page: slot]?.beginLookUp() {
      // What waits for the rate for longer than `freshness` is looked up again.
      let most = send.maximumPerSecond.map { max(100, $0 * 2) } ?? Int.max
      effects.questions.append(
        .page(
          items.ticket(slot), AudienceQuery(send), slice, createdBefore: send.acceptedAt,
          limit: min(configuration.broadcasts.lookUpPage, most), askedAt: now.uptime))
    }
    if let page = broadcasts[page: slot], page.isExhausted, items[slot].openDevices == 0 {
      settlePage(slot, page, send)
    }
  }

  /// Takes as many of the found devices into the item as there is room for, and as the broadcast's rate allows.
  private mutating func takePermitted(_ slot: Int, _ send: SendRequest, room: Int) {
    guard let page = broadcasts[page: slot] else { return }
    let (isLeaving, now) = (page.state == .leaving, now)
    var room = min(room, page.waiting)
    // An expired page is not pushed, so it need not wait for its rate.
    if let rate = send.maximumPerSecond, now.wall < items[slot].expiresAt, !isLeaving {
      if let permits = broadcasts[page: slot]?.requestPermits(rate: rate, at: now) {
        effects.questions.append(.reserve(items.ticket(slot), permits, page.broadcast, perSecond: rate))
      }
      room = min(room, broadcasts[page: slot]?.permits.count ?? 0)
    }
    guard room > 0 else { return }
    let delay =
      isLeaving ? deferral.delay(ofPaused: page.broadcast, until: items[slot].expiresAt, at: now) : nil
    take(room, slot, deferredFor: delay)
  }

  private mutating func take(_ count: Int, _ slot: Int, deferredFor delay: Duration?) {
    let first = items[slot].devices.count
    items.add(slot, Array(broadcasts[page: slot]?.take(count) ?? []))
    begin(first..<items[slot].devices.count, of: slot, deferredFor: delay)
  }

  /// Writes the page's status or retry record after every device has its result or is deferred.
  /// Devices that got the push are counted, the others listed.
  private mutating func settlePage(_ slot: Int, _ page: OpenPage, _ send: SendRequest) {
    if page.isReturned { return settle(slot, as: page.state == .cut ? .cancelled : endState(slot)) }
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
