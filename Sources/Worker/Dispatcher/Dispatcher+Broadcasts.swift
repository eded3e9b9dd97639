import FanfareCore
import RDKafka

/// Questions to the store and their answers; the way from a large audience to a broadcast's
/// segments.
///
/// A send whose audience may be of any size is surveyed first. A small audience is dispatched like any other; a large
/// one is divided into pages, which all workers push together.
extension Dispatcher {
  /// Handles the store's answer, or its failure to answer.
  mutating func answer(_ answer: BroadcastAnswer) {
    guard let outcome = answer.outcome else { return broadcasts.failed(answer.question, at: now.uptime) }
    broadcasts.answered()
    switch (answer.question, outcome) {
    case (.survey(let ticket, _, let broadcast, _), .survey(let found, let control, let pages)):
      surveyed(ticket, broadcast, found, control, pages: pages)
    case (.plan(let ticket, let broadcast, _), .plan(let pages, let segments, let isAnnounced)):
      planned(ticket, broadcast, pages: pages, segments: segments, isAnnounced: isAnnounced)
    case (.announce(let ticket, _), .noted): if items.isCurrent(ticket) { conclude(ticket.slot) }
    case (.finishedPages(let ticket, _, let range), .pages(let finished)):
      resumeSegment(ticket, range, finished: finished)
    case (.page(let ticket, _, let slice, _, _, let askedAt), .devices(let page)):
      // A slow registry's answer counts from this moment: repeating the question would never end.
      let checkedAt = max(askedAt, now.uptime - Self.freshness)
      if items.isCurrent(ticket), broadcasts[page: ticket.slot]?.isLookingUp == true {
        let hub = items[ticket.slot].hub
        let devices = page.targets.map { target in
          DeviceProgress(
            target: target, sender: table.sender(hub: hub, platform: target.platform), isRegistered: true,
            checkedAt: checkedAt)
        }
        broadcasts[page: ticket.slot]?.endLookUp(devices, upTo: page.last, in: slice, checkedAt: checkedAt)
        items[ticket.slot].lookedUp(at: now.wall)
      }
    case (.reserve(let ticket, let count, _, _), .moment(let moment)):
      if items.isCurrent(ticket) { broadcasts[page: ticket.slot]?.reserve(count, from: moment) }
    case (.finish(let ticket, _, _), .noted): finished(ticket)
    case (.controls(let broadcasts), .controls(let answers)): noteControl(broadcasts, answers)
    case (.change(let broadcast, _), .controls(let answers)): broadcasts.noteControl(broadcast, answers.first)
    case (.quota(let sender, let pushes, _, _), .moment(let moment)):
      lanes[sender].grantQuota(pushes, from: moment, at: now)
    case (.hubs, .hubs(let hubs)): hubsListed(hubs)
    // `ask` answers each question with its own kind of outcome.
    default: preconditionFailure("a question about a broadcast has the answer to another")
    }
  }

  /// Repeats a question. For a send that has expired meanwhile it only asks whether a plan exists:
  /// the send must not be reported as expired while its pages run.
  mutating func askAgain(_ question: BroadcastQuestion) {
    guard case .survey(let ticket, _, let broadcast, let createdBefore) = question, items.isCurrent(ticket),
      now.wall >= items[ticket.slot].expiresAt
    else { return effects.questions.append(question) }
    effects.questions.append(.survey(ticket, nil, broadcast, createdBefore: createdBefore))
  }

  /// Asks for the first devices of audiences.
  mutating func survey() {
    while items.held.devices < configuration.limits.maximumDevices, let ticket = broadcasts.popSurvey() {
      guard items.isResolving(ticket), let send = items[ticket.slot].send else { continue }
      broadcasts.beginSurvey()
      // Only the platforms that the send has content for. An expired send is surveyed too: a worker that died may have
      // divided it already.
      let query =
        now.wall < items[ticket.slot].expiresAt
        ? AudienceQuery(send) : nil
      let broadcast = BroadcastID(hub: send.hub, send: send.identity)
      effects.questions.append(.survey(ticket, query, broadcast, createdBefore: send.acceptedAt))
    }
  }

  /// The survey is answered: the first devices of the audience, the broadcast's control, and its
  /// pages.
  private mutating func surveyed(
    _ ticket: Ticket, _ broadcast: BroadcastID, _ found: AudiencePage?, _ control: BroadcastControl, pages: Int
  ) {
    broadcasts.endSurvey()
    guard items.isResolving(ticket) else { return }
    items[ticket.slot].follow(control.rate)
    guard let send = items[ticket.slot].send else { return }
    // However its audience has changed since: the pages are the send, and devices outside them do not count.
    guard pages == 0 else { return effects.questions.append(.plan(ticket, broadcast, BroadcastPlan(pages: pages))) }
    guard let found, now.wall < items[ticket.slot].expiresAt else {
      return settle(ticket.slot, as: .expired)
    }
    // Only pages keep a rate, and only pages can be paused; those of a cancelled broadcast are never begun.
    guard
      found.last != nil || control.state != .running || send.maximumPerSecond.map({ found.targets.count > $0 }) == true
    else {
      return receive(found.targets, for: ticket, checkedAt: now.uptime)
    }
    let wanted = pageCount(of: found, rate: send.maximumPerSecond)
    effects.questions.append(
      .plan(
        ticket, broadcast,
        BroadcastPlan(
          pages: wanted, segments: configuration.broadcasts.segments(pages: wanted),
          rate: BroadcastRate(send.maximumPerSecond))))
  }

  /// The number of pages for an audience that begins with these devices.
  private func pageCount(of found: AudiencePage, rate: Int?) -> Int {
    // Ids are uniformly distributed: the id space that the first ones span tells how many there are.
    let share = max(found.last.map { RegistrationSlice.whole.share(upTo: $0) } ?? 1, 1e-12)
    var devicesPerPage = Double(configuration.broadcasts.pageDevices - configuration.broadcasts.headStart)
    // A page takes about a second, so that a crash repeats little; but each page costs a status record and a row in the
    // registry, so a slow broadcast has no smaller pages than that.
    if let rate {
      let least = WorkerConfiguration.Broadcasts.leastPageDevices
      devicesPerPage = Double(min(configuration.broadcasts.pageDevices, max(least, rate)))
    }
    // When few of the devices examined match, pages are larger slices, but not without bound.
    let pages =
      max(Double(found.targets.count) / devicesPerPage, Double(found.examined) / (devicesPerPage * 20)) / share
    return Int(clamping: min(max(1, pages.rounded(.up)), Double(StatusRecord.maximumParts)))
  }

  /// Handles the fixed plan: writes the send's segments unless they have been written. Another worker may have written
  /// some, so they must be the same, even if its release divides otherwise.
  private mutating func planned(
    _ ticket: Ticket, _ broadcast: BroadcastID, pages: Int, segments: Int, isAnnounced: Bool
  ) {
    let slot = ticket.slot
    guard items.isResolving(ticket), let send = items[slot].send else { return }
    let count = segments > 0 ? segments : configuration.broadcasts.segments(pages: pages)
    let segments = isAnnounced ? [] : SegmentRecord.divide(send, pages: pages, into: count)
    items.settle(slot, records: segments.count)
    advanceLane(slot)
    guard !isAnnounced else { return conclude(slot) }
    items[slot].becomePlan()
    broadcasts.plan(broadcast, in: slot)
    effects.tallies.dispatched.append(items[slot].hub)
    for segment in segments {
      // The key spreads the segments of a broadcast over many partitions.
      var key = Array(send.id.description.utf8)
      key.append(UInt8(ascii: "/"))
      key.appendJSON(segment.range.lowerBound)
      effects.productions.append(
        Production(kind: .segment, ticket: items.ticket(slot)),
        ProducerRecord(topic: topics.segments, key: key, event: segment.encoded(at: now.wall)))
    }
  }

  /// Tells the store that the records of a plan, a segment or a page are durable.
  mutating func tellStore(_ slot: Int) {
    let ticket = items.ticket(slot)
    if let broadcast = broadcasts.plan(slot) {
      effects.questions.append(.announce(ticket, broadcast))
    } else if let walk = broadcasts[walk: slot] {
      effects.questions.append(.finish(ticket, walk.broadcast, walk.rest))
    } else if let page = broadcasts[page: slot] {
      effects.questions.append(.finish(ticket, page.broadcast, [page.number]))
    }
  }

  /// The controls of these broadcasts are known.
  private mutating func noteControl(_ broadcasts: [BroadcastID], _ answers: [BroadcastControl]) {
    self.broadcasts.noteControl(broadcasts, answers, items: items, at: now)
    for ticket in self.broadcasts.followers where items.isCurrent(ticket) {
      items[ticket.slot].follow(self.broadcasts.broadcast(of: ticket.slot).flatMap { self.broadcasts.rates[$0] })
    }
    // The next pause is another one.
    for (broadcast, control) in self.broadcasts.controls where control != .paused {
      deferral.endPause(of: broadcast)
    }
  }

  /// The part of a send that is a page: all attempts at a broadcast have one id.
  func pagePart(_ part: StatusPart, of send: SendRequest) -> StatusPart {
    var part = part
    if part.attempt == nil, part.parts > 1 { part.attempt = SegmentRecord.attempt(of: send) }
    return part
  }
}
