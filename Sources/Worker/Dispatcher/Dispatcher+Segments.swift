import DequeModule
import FanfareCore
import RDKafka

/// Walks segments: pushes their pages one after another, a page of each segment in turn.
///
/// A page is finished when each of its devices has its result, its status record is acknowledged, and the store that
/// all workers share has noted it. Only then is the next page pushed, except for a head start while the last pushes of
/// the page before it are answered and noted, so that connections do not idle between two pages.
///
/// So a crash repeats at most a page and the head start of the next ones, and the pages that wait for a rate or a quota
/// (`BroadcastWalker.mostSlowPages`). Deferred records of pages that have come back are such pages, too.
extension Dispatcher {
  /// Takes in a segment.
  mutating func begin(_ segment: SegmentRecord, hub: Int, record: ConsumedRecord, origin: Origin) {
    let bytes = record.value.count
    guard let slot = admit(segment.identity, hub: hub, origin: origin, bytes: bytes, as: .segment) else { return }
    let broadcast = BroadcastID(hub: segment.send.hub, send: segment.send.identity)
    items[slot].hold(segment.send, until: expiry(of: segment.send), times: SendTimes())
    broadcasts.begin(SegmentWalk(broadcast: broadcast, pages: segment.pages, ahead: segment.range), items.ticket(slot))
    takePages(slot)
  }

  /// Takes the next pages of a segment in hand. A segment without further pages is done.
  private mutating func takePages(_ slot: Int) {
    guard let broadcast = broadcasts[walk: slot]?.broadcast else { return }
    guard let next = broadcasts[walk: slot]?.takePages() else { return conclude(slot) }
    items[slot].walk()
    effects.questions.append(.finishedPages(items.ticket(slot), broadcast, next))
  }

  /// Handles the answer which of a segment's next pages are finished.
  mutating func resumeSegment(_ ticket: Ticket, _ range: Range<Int>, finished: [Int]) {
    guard items.isCurrent(ticket), broadcasts[walk: ticket.slot] != nil else { return }
    broadcasts[walk: ticket.slot]?.resume(range, finished: Set(finished))
    if broadcasts[walk: ticket.slot]?.rest.isEmpty == true { takePages(ticket.slot) }
  }

  /// Goes on with the open pages, opens the next ones, and asks for the broadcasts' controls.
  mutating func walkSegments() {
    guard !broadcasts.isIdle else { return broadcasts.forgetControls() }
    broadcasts.forgetClosedPages(items: items)
    if let asked = broadcasts.requestControls(
      items: items, interval: configuration.times.controlInterval, at: now.uptime)
    {
      effects.questions.append(.controls(asked))
    }
    var room = configuration.limits.maximumDevices / 4
    for ticket in broadcasts.openPages { room -= control(ticket.slot, room: room) }
    readmit()
    turnPages()
  }

  /// Applies the control of its broadcast to an open page.
  /// Returns how many devices it keeps in memory during a pause, at most `room`.
  mutating func control(_ slot: Int, room: Int) -> Int {
    guard let page = broadcasts[page: slot] else { return 0 }
    let control = broadcasts.controls[page.broadcast] ?? .running
    // A page that expired while it was paused ends like any other.
    follow(control == .paused && now.wall >= items[slot].expiresAt ? .running : control, slot)
    guard items[slot].phase == .dispatching, broadcasts.isPaused(slot) else { return 0 }
    let count = items[slot].devices.count
    // A deferred record would hold up its partition during the pause.
    if !page.isReturned, count <= room { return count }
    leave(slot)
    return 0
  }

  /// The turns of the open pages, the oldest first.
  private struct PageTurns {
    /// Devices that a page may push to while those before it are being finished; nil: there is none before it.
    var room: Int?
    /// The pages that are pushed or looked up.
    var open = 0
    /// The broadcasts with pages that wait for a rate or a quota.
    var slow: Set<BroadcastID> = []
  }

  /// Gives each open page its turn, and opens further ones until one is being pushed and one is looked up, or the room
  /// is used up.
  ///
  /// One page is pushed whole. The pages behind it may push to as many devices together as a head start has, once those
  /// before them have handed over all of theirs. A page that waits for a rate or a quota takes no turn, and no other
  /// page of its broadcast does: two would only share the rate, and a crash would repeat both. Of a page that waits for
  /// a quota, the devices of other platforms go on meanwhile.
  private mutating func turnPages() {
    var turns = PageTurns()
    for ticket in broadcasts.openPages { turn(ticket.slot, &turns) }
    guard !partitions.isShuttingDown else { return }
    while turns.open < 2 || turns.room.map({ $0 > 0 }) == true, let ticket = openNextPage(behind: turns) {
      turn(ticket.slot, &turns)
    }
  }

  private mutating func turn(_ slot: Int, _ turns: inout PageTurns) {
    guard let page = broadcasts[page: slot] else { return }
    if page.state == .leaving, items[slot].phase == .dispatching { return goOn(slot, limit: nil) }
    // A paused page takes no turn, unless only its status is left.
    guard !page.isPaused || (page.isExhausted && items[slot].openDevices == 0) || items[slot].phase == .settling
    else { return }
    let waitsForQuota = waitsForQuota(slot)
    let isFirstSlow = waitsForQuota && !turns.slow.contains(page.broadcast)
    if waitsForQuota || waitsForRate(slot, page) { turns.slow.insert(page.broadcast) }
    let isSlow = turns.slow.contains(page.broadcast)
    if !isSlow || turns.slow.count > BroadcastWalker.mostSlowPages { turns.open += 1 }
    if items[slot].phase == .dispatching {
      let room = isSlow ? (isFirstSlow ? nil : 0) : turns.room
      // A broadcast with a rate needs no head start.
      goOn(slot, limit: room.map { items[slot].send?.maximumPerSecond == nil ? max(0, $0 - page.devices) : 0 })
    }
    if !isSlow { turns.room = room(behind: slot, of: turns.room) }
  }

  /// The devices that the pages behind this one may push to. A page and those of the pages behind it are at most
  /// `pageDevices`. Pushes that wait for a quota do not count: a page with no others left has no turn itself.
  private func room(behind slot: Int, of room: Int?) -> Int {
    guard let page = broadcasts[page: slot], page.isExhausted,
      lanes.allSatisfy({ !$0.hasQueuedBroadcast || $0.quota.isDry(at: now.wall) })
    else { return 0 }
    let all = configuration.broadcasts.pageDevices - page.devices
    return max(0, room.map { $0 - page.devices } ?? min(configuration.broadcasts.headStart, all))
  }

  /// Opens the next page, by turns a deferred record and one of a segment; nil: there is none.
  private mutating func openNextPage(behind turns: PageTurns) -> Ticket? {
    if broadcasts.takeReturnedTurn() {
      return openReturned(behind: turns) ?? openPageOfSegment(behind: turns)
    }
    return openPageOfSegment(behind: turns) ?? openReturned(behind: turns)
  }

  private mutating func openReturned(behind turns: PageTurns) -> Ticket? {
    let controls = broadcasts.controls
    while let next = broadcasts.returned.popNext(where: { next in
      controls[next.retry.broadcast] == .running && !turns.slow.contains(next.retry.broadcast)
    }) {
      if items.isResolving(next.ticket) { return readmit(next) }
    }
    return nil
  }

  private mutating func openPageOfSegment(behind turns: PageTurns) -> Ticket? {
    var ending: Int?
    for _ in 0..<broadcasts.segments.count {
      guard let ticket = broadcasts.popSegment() else { break }
      guard items.isCurrent(ticket), let walk = broadcasts[walk: ticket.slot] else { continue }
      broadcasts.appendSegment(ticket)
      // Another page would wait for the same rate.
      guard walk.phase == .ready, !turns.slow.contains(walk.broadcast), partitions.isOpen(items[ticket.slot].origin)
      else { continue }
      let control = broadcasts.controls[walk.broadcast]
      let end: StatusRecord.State? =
        now.wall >= items[ticket.slot].expiresAt ? .expired : control == .cancelled ? .cancelled : nil
      if let end {
        let already = ending ?? broadcasts.endingPages(items: items)
        let fits = already + walk.rest.count <= SegmentWalk.mostPages
        ending = fits ? already + walk.rest.count : already
        if fits { endSegment(ticket.slot, as: end) }
        continue
      }
      switch control {
      case .running: return openPage(of: ticket)
      case .paused: broadcasts.setLastSegmentApart()
      case .cancelled, nil: break
      }
    }
    return nil
  }

  /// Whether the page can push to no further device until its broadcast's rate allows it.
  /// An expired page is ended.
  private func waitsForRate(_ slot: Int, _ page: OpenPage) -> Bool {
    items[slot].phase == .dispatching && now.wall < items[slot].expiresAt && page.waitsForRate(at: now)
  }

  /// Whether all queued devices of the page wait for a quota: the others need no turn meanwhile.
  private func waitsForQuota(_ slot: Int) -> Bool {
    let hub = items[slot].hub
    guard items[slot].phase == .dispatching, items[slot].openDevices > 0,
      SenderTable.places(of: hub).contains(where: {
        lanes[$0].quota.isDry(at: now.wall) && lanes[$0].hasQueuedBroadcast
      })
    else { return false }
    var isWaiting = false
    for index in items[slot].devices.indices where items[slot].devices[index].phase == .queued {
      guard lanes[items[slot].devices[index].sender].quota.isDry(at: now.wall) else { return false }
      isWaiting = true
    }
    return isWaiting
  }

  private mutating func openPage(of segment: Ticket) -> Ticket? {
    guard let walk = broadcasts[walk: segment.slot], let send = items[segment.slot].send,
      let number = broadcasts[walk: segment.slot]?.openPage()
    else { return nil }
    let page = OpenPage(segment: segment, broadcast: walk.broadcast, number: number, pages: walk.pages)
    let expiresAt = items[segment.slot].expiresAt
    let source = WorkItem.Source(origin: items[segment.slot].origin, hub: items[segment.slot].hub)
    let slot = items.occupy(source, as: .page)
    items[slot].hold(send, until: expiresAt, times: SendTimes(consumed: now.wall))
    beginTrace(slot, send, isPage: true)
    items.dispatch(slot, [], isBroadcast: true)
    let ticket = items.ticket(slot)
    broadcasts.open(page, ticket)
    return ticket
  }

  /// Ends a segment's pages in hand without pushing them.
  /// One status record tells of each run of pages, so that the account adds up.
  private mutating func endSegment(_ slot: Int, as state: StatusRecord.State) {
    guard let walk = broadcasts[walk: slot], let send = items[slot].send else { return }
    broadcasts[walk: slot]?.end()
    let runs = walk.runs
    items.settle(slot, records: runs.count, keepsSend: true)
    for run in runs {
      let part = pagePart(StatusPart(part: run.lowerBound, parts: walk.pages), of: send)
      let status = StatusRecord(of: send, as: state, part, span: run.count, devices: [], at: now.wall)
      produce(status, of: .page, for: slot)
    }
  }

  /// Lets the segment open a page that was given up again, if a second partition keeps the segment.
  mutating func reopenSegment(ofPage slot: Int) {
    guard let page = broadcasts[page: slot], let segment = page.segment, items.isCurrent(segment) else { return }
    broadcasts[walk: segment.slot]?.reopen(page.number)
  }

  /// Handles the store's note that a page, or a segment's pages ended without being pushed, are
  /// finished.
  mutating func finished(_ ticket: Ticket) {
    guard items.isCurrent(ticket) else { return }
    guard let page = broadcasts[page: ticket.slot] else { return takePages(ticket.slot) }
    broadcasts.close(ticket)
    vacate(ticket.slot)
    guard let segment = page.segment, items.isCurrent(segment), broadcasts[walk: segment.slot] != nil else { return }
    broadcasts[walk: segment.slot]?.finishPage()
    if broadcasts[walk: segment.slot]?.rest.isEmpty == true { takePages(segment.slot) }
  }
}
