import DequeModule
import FanfareCore
import RDKafka

/// Walks segments: pushes their pages one after another, a page of each segment in turn.
///
/// A page is finished when each of its devices has its result, its status record is acknowledged, and the store that
/// all workers share has noted it. Only then is the next page pushed, except for a head start while the last pushes of
/// the page before it are answered and noted, so that connections do not idle between two pages.
///
/// So a crash repeats at most, of each broadcast: a page and the head start of the next, and the pages that wait for a
/// rate or a quota (`BroadcastWalker.mostSlowPages`); and for each platform as many readmitted devices as a page has
/// (`ReadmissionSlot`).
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
    guard !broadcasts.isIdle else { return }
    broadcasts.forgetClosedPages(items: items)
    if let asked = broadcasts.requestControls(
      items: items, interval: configuration.times.controlInterval, at: now.uptime)
    {
      effects.questions.append(.controls(asked))
    }
    controlPages()
    turnPages()
    if !partitions.isShuttingDown { openPages() }
  }

  /// Applies the controls of their broadcasts to the open pages.
  private mutating func controlPages() {
    var paused = 0
    for ticket in broadcasts.openPages {
      let slot = ticket.slot
      let control = broadcasts[page: slot].flatMap { broadcasts.controls[$0.broadcast] } ?? .running
      // A page that expired while it was paused ends like any other.
      follow(control == .paused && now.wall >= items[slot].expiresAt ? .running : control, slot)
      guard items[slot].phase == .dispatching, broadcasts.isPaused(slot) else { continue }
      let count = items[slot].devices.count
      if paused + count > configuration.limits.maximumDevices / 4 {
        leave(slot)
      } else {
        paused += count
      }
    }
  }

  /// Gives each open page its turn, the oldest first.
  ///
  /// One page is pushed whole, and the page behind it gets a head start, once it allows one (`nextTurn`). A page that
  /// waits for a rate or a quota takes no turn, and no other page of its broadcast does: two would only share the rate,
  /// and a crash would repeat both. Of a page that waits for a quota, the devices of other platforms go on meanwhile.
  private mutating func turnPages() {
    var (hasTurn, next) = (true, PageTurn.none)
    var slow = Set<BroadcastID>()
    for ticket in broadcasts.openPages {
      let slot = ticket.slot
      guard let page = broadcasts[page: slot] else { continue }
      if page.state == .leaving, items[slot].phase == .dispatching {
        goOn(slot, .whole)
        continue
      }
      // A paused page takes no turn, unless only its status is left.
      guard
        !page.isPaused || (page.isExhausted && items[slot].openDevices == 0) || items[slot].phase == .settling
      else { continue }
      let waitsForQuota = waitsForQuota(slot)
      let goesOn = waitsForQuota && !slow.contains(page.broadcast)
      if waitsForQuota || waitsForRate(slot, page) { slow.insert(page.broadcast) }
      let isNext = hasTurn && !slow.contains(page.broadcast)
      if items[slot].phase == .dispatching {
        goOn(slot, isNext || goesOn ? .whole : next)
      }
      next = isNext ? nextTurn(behind: slot) : .none
      // The turn lasts until the store has noted that the page is finished.
      if isNext { hasTurn = false }
    }
  }

  /// Opens pages until one is being pushed and one is looked up.
  /// Paused pages do not count; nor do a few of the pages that wait for their rate or a quota.
  private mutating func openPages() {
    let (pages, slow) = countOpenPages()
    var open = pages
    var ending: Int?
    for _ in 0..<broadcasts.segments.count where open < 2 {
      guard let ticket = broadcasts.popSegment() else { break }
      guard items.isCurrent(ticket), let walk = broadcasts[walk: ticket.slot] else { continue }
      broadcasts.appendSegment(ticket)
      // Another page would wait for the same rate.
      guard walk.phase == .ready, !slow.contains(walk.broadcast), partitions.isOpen(items[ticket.slot].origin) else {
        continue
      }
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
      case .running:
        openPage(of: ticket)
        open += 1
        if let page = broadcasts.openPages.last, open <= 2 {
          goOn(page.slot, open == 1 ? .whole : .none)
        }
      case .paused: broadcasts.setLastSegmentApart()
      case .cancelled, nil: break
      }
    }
  }

  private func countOpenPages() -> (open: Int, slow: Set<BroadcastID>) {
    var (open, slow) = (0, Set<BroadcastID>())
    for ticket in broadcasts.openPages {
      // A further page of a broadcast that waits gets no turn either (`turnPages`), so it does not count.
      guard let page = broadcasts[page: ticket.slot], !page.isPaused, !slow.contains(page.broadcast) else { continue }
      if slow.count < BroadcastWalker.mostSlowPages,
        waitsForRate(ticket.slot, page) || waitsForQuota(ticket.slot)
      {
        slow.insert(page.broadcast)
      } else {
        open += 1
      }
    }
    return (open, slow)
  }

  /// Whether the page can do nothing until its broadcast's rate allows more pushes.
  /// An expired page is ended.
  private func waitsForRate(_ slot: Int, _ page: OpenPage) -> Bool {
    items[slot].phase == .dispatching && items[slot].openDevices == 0 && now.wall < items[slot].expiresAt
      && page.waitsForRate(at: now)
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

  private mutating func openPage(of segment: Ticket) {
    guard let walk = broadcasts[walk: segment.slot], let send = items[segment.slot].send,
      let number = broadcasts[walk: segment.slot]?.openPage()
    else { return }
    let page = OpenPage(segment: segment, broadcast: walk.broadcast, number: number, pages: walk.pages)
    let expiresAt = items[segment.slot].expiresAt
    let source = WorkItem.Source(origin: items[segment.slot].origin, hub: items[segment.slot].hub)
    let slot = items.occupy(source, as: .page)
    items[slot].hold(send, until: expiresAt, times: SendTimes(consumed: now.wall))
    beginTrace(slot, send, isPage: true)
    items.dispatch(slot, [], isBroadcast: true)
    broadcasts.open(page, items.ticket(slot))
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
    guard items[slot].isPage, let page = broadcasts[page: slot], items.isCurrent(page.segment) else { return }
    broadcasts[walk: page.segment.slot]?.reopen(page.number)
  }

  /// Handles the store's note that a page, or a segment's pages ended without being pushed, are
  /// finished.
  mutating func finished(_ ticket: Ticket) {
    guard items.isCurrent(ticket) else { return }
    guard let page = broadcasts[page: ticket.slot] else { return takePages(ticket.slot) }
    broadcasts.close(ticket)
    vacate(ticket.slot)
    guard items.isCurrent(page.segment), broadcasts[walk: page.segment.slot] != nil else { return }
    broadcasts[walk: page.segment.slot]?.finishPage()
    if broadcasts[walk: page.segment.slot]?.rest.isEmpty == true { takePages(page.segment.slot) }
  }
}
