import DequeModule
import FanfareCore
import RDKafka

/// The worker goes through the pages of its segments, one page after another, a page of each segment by turns.
///
/// A page is done when each of its devices has its result, its status record is acknowledged, and the store that all
/// workers share has taken note that it is finished; the next one is pushed only then, but for a head start while the
/// last pushes of the one before it are answered and noted: so the connections need not fall idle between two pages.
/// What a crash repeats at most is a page and a head start of each broadcast, and those that wait for their rates or a
/// quota; and of what pages have put off and has come back, as many devices again as a page has, of each push service,
/// for all broadcasts together.
extension DispatchState {
  /// A segment has come.
  mutating func begin(
    _ segment: SegmentRecord, hub: Int, record: ConsumedRecord, origin: Origin, into effects: inout Effects
  ) {
    let key = RecentSends.Key(id: segment.identity, hub: Int32(hub))
    guard isNew(key, origin: origin) else { return }
    let broadcast = BroadcastID(hub: segment.send.hub, send: segment.send.identity)
    let walk = SegmentWalk(broadcast: broadcast, pages: segment.pages, ahead: segment.range)
    let slot = occupy(origin: origin, bytes: record.value.count, as: .segment(walk))
    items[slot].key = key
    items[slot].hub = hub
    items[slot].send = segment.send
    items[slot].expiresAt = expiry(of: segment.send)
    segments.append(ticket(slot))
    hasNewSegments = true
    takePages(slot, into: &effects)
  }

  /// Takes the next pages of a segment in hand that has none left; the segment is done where there are none.
  private mutating func takePages(_ slot: Int, into effects: inout Effects) {
    guard var walk = items[slot].walk else { return }
    guard !walk.ahead.isEmpty else { return conclude(slot) }
    let next = walk.ahead.prefix(SegmentWalk.mostPages)
    walk.ahead = walk.ahead.dropFirst(next.count)
    walk.phase = .asking
    items[slot].walk = walk
    items[slot].phase = .walking
    effects.questions.append(.finishedPages(ticket(slot), walk.broadcast, next))
  }

  /// It is known which of a segment's next pages are finished.
  mutating func resumeSegment(_ ticket: Ticket, _ range: Range<Int>, finished: [Int], into effects: inout Effects) {
    guard isCurrent(ticket), var walk = items[ticket.slot].walk else { return }
    let finished = Set(finished)
    walk.rest = range.reversed().filter { !finished.contains($0) }
    walk.phase = .ready
    items[ticket.slot].walk = walk
    if walk.rest.isEmpty { takePages(ticket.slot, into: &effects) }
  }

  /// Goes on with what is open, opens the next pages, and asks what is wanted of the broadcasts.
  mutating func walkSegments(at now: Moment, into effects: inout Effects) {
    guard !segments.isEmpty || !pausedSegments.isEmpty || !pages.isEmpty else { return }
    pages = Deque(pages.filter { isCurrent($0) })
    askCourses(at: now, into: &effects)
    var paused = 0
    for ticket in pages {
      let course = items[ticket.slot].page.flatMap { courses[$0.broadcast] } ?? .running
      // What has expired while it was paused ends as any other does.
      follow(course == .paused && now.wall >= items[ticket.slot].expiresAt ? .running : course, ticket.slot)
      guard items[ticket.slot].phase == .dispatching, items[ticket.slot].page?.isParked == true else { continue }
      let count = items[ticket.slot].devices.count
      if paused + count > configuration.maximumDevices / 4 {
        leave(ticket.slot, at: now, into: &effects)
      } else {
        paused += count
      }
    }
    var (hasTurn, next) = (true, PageTurn.none)
    var slow = Set<BroadcastID>()
    for ticket in pages {
      guard let page = items[ticket.slot].page else { continue }
      if page.isLeaving, items[ticket.slot].phase == .dispatching {
        goOn(ticket.slot, .whole, at: now, into: &effects)
        continue
      }
      // One that is paused takes nobody's turn, unless there is nothing left of it but its status.
      guard
        !page.isParked || (page.isExhausted && items[ticket.slot].openDevices == 0)
          || items[ticket.slot].phase == .settling
      else { continue }
      let waitsForQuota = waitsForItsQuota(ticket.slot, at: now)
      // What is not for the service with the quota need not wait.
      let goesOn = waitsForQuota && !slow.contains(page.broadcast)
      // Two pages of a broadcast would only share its rate, and both be repeated after a crash.
      if waitsForQuota || waitsForItsRate(ticket.slot, page, at: now) { slow.insert(page.broadcast) }
      let isNext = hasTurn && !slow.contains(page.broadcast)
      if items[ticket.slot].phase == .dispatching {
        goOn(ticket.slot, isNext || goesOn ? .whole : next, at: now, into: &effects)
      }
      next = isNext ? turn(behind: ticket.slot, at: now) : .none
      // Until the store knows that it is finished.
      if isNext { hasTurn = false }
    }
    guard shutdownDeadline == nil else { return }
    openPages(at: now, into: &effects)
  }

  private mutating func openPages(at now: Moment, into effects: inout Effects) {
    // One is pushed, and one is looked up meanwhile and gets its head start. Those that are paused wait aside, and so
    // do some that wait for their rate or a quota.
    var (open, slow) = (0, Set<BroadcastID>())
    for ticket in pages {
      // What is open behind one that waits has no turn before it, and is in nobody's way.
      guard let page = items[ticket.slot].page, !page.isParked, !slow.contains(page.broadcast) else { continue }
      if slow.count < Self.mostSlowPages,
        waitsForItsRate(ticket.slot, page, at: now) || waitsForItsQuota(ticket.slot, at: now)
      {
        slow.insert(page.broadcast)
      } else {
        open += 1
      }
    }
    var ending: Int?
    for _ in 0..<segments.count where open < 2 {
      let ticket = segments.removeFirst()
      guard isCurrent(ticket), let walk = items[ticket.slot].walk else { continue }
      segments.append(ticket)
      // Another page would wait for the same rate.
      guard walk.phase == .ready, !slow.contains(walk.broadcast), ledger.isOpen(items[ticket.slot].origin) else {
        continue
      }
      let end: StatusRecord.State? =
        now.wall >= items[ticket.slot].expiresAt ? .expired : courses[walk.broadcast] == .cancelled ? .cancelled : nil
      if let end {
        let already = ending ?? endingPages
        let fits = already + walk.rest.count <= SegmentWalk.mostPages
        ending = fits ? already + walk.rest.count : already
        if fits { endSegment(ticket.slot, as: end, at: now, into: &effects) }
        continue
      }
      switch courses[walk.broadcast] {
      case .running:
        openPage(of: ticket)
        open += 1
        if open == 1, let page = pages.last { goOn(page.slot, .whole, at: now, into: &effects) }
        if open == 2, let page = pages.last { goOn(page.slot, .none, at: now, into: &effects) }
      case .paused:
        segments.removeLast()
        pausedSegments.append(ticket)
      case .cancelled, nil: break
      }
    }
  }

  /// How many pages of segments end without having been pushed: their status records are on their way, or the store is
  /// being told.
  private var endingPages: Int {
    segments.reduce(0) { sum, ticket in
      guard isCurrent(ticket), let walk = items[ticket.slot].walk, walk.phase == .ending else { return sum }
      return sum + walk.rest.count
    }
  }

  /// How many pages wait for their rate or a quota at a time without keeping others from their turn.
  private static let mostSlowPages = 8

  /// Whether nothing can be done for the page before its broadcast's rate allows more pushes. One that has expired is
  /// ended.
  private func waitsForItsRate(_ slot: Int, _ page: OpenPage, at now: Moment) -> Bool {
    guard items[slot].phase == .dispatching, items[slot].openDevices == 0, page.permits == 0,
      now.wall < items[slot].expiresAt
    else { return false }
    return page.isReserving || page.reserved.map { $0.from > now.wall } == true
  }

  /// Whether all that the page has in queues waits for a quota: what its services take meanwhile needs no turn.
  private func waitsForItsQuota(_ slot: Int, at now: Moment) -> Bool {
    let hub = items[slot].hub
    guard items[slot].phase == .dispatching, items[slot].openDevices > 0,
      senders[SenderTable.places(of: hub)].contains(where: { $0.quota.isDry(at: now.wall) && $0.queue.hasBulk })
    else { return false }
    var isWaiting = false
    for index in items[slot].devices.indices where items[slot].devices[index].phase == .queued {
      guard senders[items[slot].devices[index].sender].quota.isDry(at: now.wall) else { return false }
      isWaiting = true
    }
    return isWaiting
  }

  private mutating func openPage(of segment: Ticket) {
    guard var walk = items[segment.slot].walk, let number = walk.rest.popLast(), let send = items[segment.slot].send
    else {
      return
    }
    walk.phase = .busy
    items[segment.slot].walk = walk
    let page = OpenPage(segment: segment, broadcast: walk.broadcast, number: number, pages: walk.pages)
    let slot = occupy(origin: items[segment.slot].origin, bytes: 0, as: .page(page))
    items[slot].phase = .dispatching
    items[slot].hub = items[segment.slot].hub
    items[slot].send = send
    items[slot].expiresAt = items[segment.slot].expiresAt
    items[slot].isBulk = true
    pages.append(ticket(slot))
  }

  /// The pages in hand of a segment end without being pushed: each has its status record, so that the account adds up.
  private mutating func endSegment(
    _ slot: Int, as state: StatusRecord.State, at now: Moment, into effects: inout Effects
  ) {
    guard var walk = items[slot].walk, let send = items[slot].send else { return }
    walk.phase = .ending
    items[slot].walk = walk
    items[slot].phase = .settling
    items[slot].unacknowledged = walk.rest.count
    for number in walk.rest {
      produce(
        page: number, of: walk.pages, of: send, as: state, devices: [], counts: OutcomeCounts(), for: slot, at: now,
        into: &effects)
    }
  }

  /// A page is given up: its segment, where that stays because the same one has come from another partition, begins it
  /// again.
  mutating func reopenSegment(ofPage slot: Int) {
    guard let page = items[slot].page, isCurrent(page.segment), var walk = items[page.segment.slot].walk,
      walk.phase == .busy
    else { return }
    walk.rest.append(page.number)
    walk.phase = .ready
    items[page.segment.slot].walk = walk
  }

  /// A page is finished, or those of a segment that have ended without being pushed are, and the store knows it.
  mutating func finished(_ ticket: Ticket, into effects: inout Effects) {
    guard isCurrent(ticket) else { return }
    guard let page = items[ticket.slot].page else { return takePages(ticket.slot, into: &effects) }
    pages.removeAll { $0 == ticket }
    vacate(ticket.slot)
    guard isCurrent(page.segment), var walk = items[page.segment.slot].walk else { return }
    walk.phase = .ready
    items[page.segment.slot].walk = walk
    if walk.rest.isEmpty { takePages(page.segment.slot, into: &effects) }
  }

  private mutating func askCourses(at now: Moment, into effects: inout Effects) {
    guard !isAskingCourses else { return }
    guard hasNewSegments || now.uptime >= coursesDue else { return }
    hasNewSegments = false
    let broadcasts = Set(
      (segments + pausedSegments + pages).compactMap { isCurrent($0) ? items[$0.slot].broadcast : nil })
    guard !broadcasts.isEmpty else {
      // None of them is this worker's any more: looking at them again would find the same.
      segments.removeAll()
      pausedSegments.removeAll()
      courses = [:]
      return
    }
    isAskingCourses = true
    coursesDue = now.uptime + configuration.steeringInterval.milliseconds
    effects.questions.append(.courses(Array(broadcasts)))
  }

  /// It is known what is wanted of the broadcasts.
  mutating func steered(_ broadcasts: [BroadcastID], _ steerings: [BroadcastControl], at now: Moment) {
    isAskingCourses = false
    courses = Dictionary(zip(broadcasts, steerings.map(\.state))) { _, last in last }
    // The next pause is another one.
    for (broadcast, course) in courses where course != .paused { pauses[broadcast] = nil }
    let all = pausedSegments
    pausedSegments.removeAll()
    for ticket in all where isCurrent(ticket) {
      let isPaused =
        items[ticket.slot].broadcast.map { courses[$0] == .paused } == true && now.wall < items[ticket.slot].expiresAt
      if isPaused { pausedSegments.append(ticket) } else { segments.append(ticket) }
    }
  }
}
