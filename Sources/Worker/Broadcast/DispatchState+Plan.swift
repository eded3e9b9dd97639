import DequeModule
import FanfareCore
import RDKafka

/// A send whose audience may be of any size is looked at before it is dispatched: a small audience is dispatched as any
/// other, a large one is divided into pages, which all workers go through together.
extension DispatchState {
  /// How many audiences are looked at at a time.
  static let mostSurveys = 4

  /// Asks what the audiences of sends begin with, as many at a time as may be.
  mutating func survey(at now: Moment, into effects: inout Effects) {
    while openSurveys < Self.mostSurveys, devices < configuration.maximumDevices, let ticket = toSurvey.popFirst() {
      guard isCurrent(ticket), items[ticket.slot].phase == .resolving, let send = items[ticket.slot].send else {
        continue
      }
      openSurveys += 1
      // A device for whose platform the send holds nothing to show is none of its devices. Also of what has expired it
      // is asked whether it was divided before a worker died.
      let query =
        now.wall < items[ticket.slot].expiresAt
        ? AudienceQuery(hub: send.hub, audience: send.audience, platforms: send.coveredPlatforms) : nil
      let broadcast = BroadcastID(hub: send.hub, send: send.identity)
      effects.questions.append(.survey(ticket, query, broadcast, createdBefore: send.acceptedAt))
    }
  }

  /// It is known what the send's audience begins with, what is wanted of the send, and into how many pages it has been
  /// divided already.
  mutating func surveyed(
    _ ticket: Ticket, _ broadcast: BroadcastID, _ found: AudiencePage?, _ course: BroadcastControl.State, pages: Int,
    at now: Moment,
    into effects: inout Effects
  ) {
    openSurveys -= 1
    guard isCurrent(ticket), items[ticket.slot].phase == .resolving, let send = items[ticket.slot].send else { return }
    // Whatever has become of its audience since: the pages that others go through are the send, and whoever is in none
    // of them is not counted.
    guard pages == 0 else { return effects.questions.append(.plan(ticket, broadcast, pages: pages)) }
    guard let found, now.wall < items[ticket.slot].expiresAt else {
      return settle(ticket.slot, as: .expired, at: now, into: &effects)
    }
    // A rate is kept by pages only, and only they can be paused; the pages of what is cancelled are never begun.
    guard found.last != nil || course != .running || send.maximumPerSecond.map({ found.targets.count > $0 }) == true
    else {
      return receive(found.targets, for: ticket, checkedAt: now.uptime, at: now, into: &effects)
    }
    // Ids are uniformly distributed: how far the first ones reach tells how many there are.
    let share = max(found.last.map { RegistrationSlice.whole.share(upTo: $0) } ?? 1, 1e-12)
    var devicesPerPage = Double(configuration.pageDevices - configuration.headStart)
    // A page takes a second or so, however slowly the broadcast may go: it is what is repeated after a crash.
    if let rate = send.maximumPerSecond {
      devicesPerPage = min(Double(configuration.pageDevices), max(100, Double(rate)))
    }
    // Where few of those that are looked at are meant, pages are larger slices, but not without bound.
    let pages =
      max(Double(found.targets.count) / devicesPerPage, Double(found.examined) / (devicesPerPage * 20)) / share
    effects.questions.append(
      .plan(ticket, broadcast, pages: Int(min(max(1, pages.rounded(.up)), Double(StatusRecord.maximumParts)))))
  }

  /// It is fixed into how many pages the send is divided: its segments are written, unless they have been.
  mutating func planned(
    _ ticket: Ticket, _ broadcast: BroadcastID, pages: Int, isAnnounced: Bool, at now: Moment,
    into effects: inout Effects
  ) {
    let slot = ticket.slot
    guard isCurrent(ticket), items[slot].phase == .resolving, let send = items[slot].send else { return }
    items[slot].send = nil
    items[slot].phase = .settling
    advanceLane(slot)
    guard !isAnnounced else { return conclude(slot) }
    items[slot].role = .plan(broadcast)
    effects.tallies.dispatched.append(items[slot].hub)
    let segments = SegmentRecord.divide(send, pages: pages, into: configuration.segments)
    items[slot].unacknowledged = segments.count
    for segment in segments {
      // Segments of one broadcast are to lie in many partitions.
      var key = Array(send.id.description.utf8)
      key.append(UInt8(ascii: "/"))
      key.appendJSON(segment.range.lowerBound)
      effects.productions.append(
        Production(kind: .segment, ticket: self.ticket(slot)),
        ProducerRecord(topic: topics.segments, key: key, event: segment.encoded(at: now.wall)))
    }
  }
}
