import FanfareCore
import RDKafka

/// After an outage the oldest comes first: what was kept from a device while its service was unavailable is sent to it
/// in the order of acceptance, one after another, and a younger send to it waits for that.
///
/// Known to this worker alone: what was put off comes back to it, as the record key is the same, for as long as it owns
/// the partition. So the order is kept of sends to users, and not over the worker's end or a change of the partition's
/// owner.
extension DispatchState {
  /// The longest that anything is put off at once for an outage.
  static let longestDelay = Duration.seconds(300)
  /// How many pushes of a sender shall come back a second while it is stopped, only to be put off again: each is two
  /// more records for Kafka to keep.
  private static let rounds = 100
  /// And how many may, so that none comes back when the outage is long over; and so many do where there was no room for
  /// them after it.
  private static let mostRounds = 1000
  /// How long one push after the other to a device may take each, when the service works.
  private static let answerTime = Duration.milliseconds(50)
  /// The longest that is put off what would not live to see its turn.
  private static let longestLastDelay = Duration.seconds(60)
  /// How often, in milliseconds, a push that waits in memory is looked at although none of those before it has ended:
  /// that they never will is rare.
  private static let patience: Int64 = 10_000
  /// The same for one that is not remembered, so that nobody wakes it.
  private static let shortPatience: Int64 = 250
  /// So long before it would expire, a push waits for none before it any more.
  static let lastCall = Duration.seconds(2)
  /// How many pushes a stopped sender keeps in memory, to try with one after another.
  private static let probesKept = 4
  /// How many that were refused already it keeps: that they were is known here only.
  private static let refusedKept = 64
  /// The most devices that an item has of which more than one refused device is kept.
  private static let mostDevicesKept = 16

  /// Remembers that the push is kept from its device, where the order of such pushes is known; returns whether it is.
  @discardableResult
  mutating func remember(_ slot: Int, _ index: Int, due: Int64, waiting: Ticket? = nil) -> Bool {
    guard let send = items[slot].send, send.audience.isOneUser, !items[slot].isBulk else { return false }
    let device = items[slot].devices[index]
    return senders[device.sender].order.remember(
      send.identity, acceptedAt: send.acceptedAt, to: device.target.registration, due: due, waiting: waiting)
  }

  /// The push is over, or waits for a reason of its own: nobody waits for it any more.
  mutating func forgetOrder(_ slot: Int, _ index: Int, at now: Moment) {
    let sender = items[slot].devices[index].sender
    guard sender >= 0, !senders[sender].order.isEmpty, let send = items[slot].send else { return }
    let next = senders[sender].order.forget(
      send.identity, acceptedAt: send.acceptedAt, to: items[slot].devices[index].target.registration, at: now.uptime)
    if let next { stopWaiting(next) }
  }

  /// Nothing comes before the push any more, or it has to be looked at.
  private mutating func stopWaiting(_ ticket: Ticket) {
    guard phase(of: ticket) == .waiting else { return }
    items[ticket.slot].devices[ticket.device].phase = .queued
    senders[items[ticket.slot].devices[ticket.device].sender].queue.append(ticket)
  }

  /// Looks at what has waited for long.
  mutating func lookAtWaiting(at now: Moment) {
    while let ticket = waiting.popDue(at: now.uptime) { stopWaiting(ticket) }
  }

  /// Looks at all that waits, now and then: what waits for a service that is stopped is put off, and so is what takes
  /// room that others need.
  mutating func sweepOrder(at now: Moment) {
    for sender in senders.indices where !senders[sender].order.isEmpty {
      for ticket in senders[sender].order.forgetOverdue(at: now.uptime) { stopWaiting(ticket) }
      guard let queue = longestQueue(of: sender, isHere: true) else { continue }
      for ticket in senders[sender].order.takeWaiting(behind: queue) { stopWaiting(ticket) }
    }
  }

  /// The push waits because of that outcome. Who tried in vain whether an outage is over, and another found that it is,
  /// is still waited for.
  mutating func waitInOrder(_ slot: Int, _ index: Int, _ delay: Duration, _ outcome: PushOutcome, at now: Moment) {
    guard outcome.isOutage, delay <= Self.longestDelay / 5 else { return forgetOrder(slot, index, at: now) }
    delayOrder(slot, index, by: delay, at: now)
  }

  /// Gives the push another time, if it is kept from its device by an outage.
  mutating func delayOrder(_ slot: Int, _ index: Int, by delay: Duration, at now: Moment) {
    let device = items[slot].devices[index]
    guard device.sender >= 0, !senders[device.sender].order.isEmpty, let send = items[slot].send else { return }
    senders[device.sender].order.delay(
      send.identity, acceptedAt: send.acceptedAt, to: device.target.registration,
      due: now.uptime + max(0, delay.milliseconds))
  }

  /// Keeps back a push that would come before an older one to the same device; returns whether it does.
  mutating func waitsItsTurn(_ ticket: Ticket, at now: Moment, into effects: inout Effects) -> Bool {
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = items[slot].devices[index].sender
    let queue = longestQueue(of: sender, isHere: false)
    let older = older(than: slot, index, at: now, limit: max(1, queue.map { $0 + 1 } ?? 1))
    let life = items[slot].expiresAt - now.wall
    // Rather before an older one than never. What has expired ends at once.
    guard older > 0, life > (senders[sender].gate.state == .closed ? Self.lastCall : .zero) else { return false }
    if let queue, older > queue, let delay = outageDelay(of: slot, index, at: now) {
      putOff(slot, index, inOrderFor: delay, at: now, into: &effects)
      return true
    }
    items[slot].devices[index].phase = .waiting
    let limit = min(Self.patience, max(life - Self.lastCall, .milliseconds(1)).milliseconds)
    let isKnown = remember(slot, index, due: now.uptime + limit, waiting: ticket)
    waiting.insert(ticket, due: now.uptime + (isKnown ? limit : min(limit, Self.shortPatience)))
    passFirstAttempt(slot, index)
    return true
  }

  /// How many others a push to a device may have before it and still wait here, and not in a retry topic: none while
  /// the sender is stopped, or where nothing may stay for long. Where half of the room is taken the devices share what
  /// that is, so that each has the oldest of its pushes here, and those that come round meet the ones that they wait
  /// for; where three quarters are, only those that are here already, until they are looked at. nil: however many.
  private func longestQueue(of sender: Int, isHere: Bool) -> Int? {
    guard !topics.retries.isEmpty else { return nil }
    func isTaken(_ quarters: Int) -> Bool {
      records > configuration.maximumRecords / 4 * quarters || bytes > configuration.maximumBytes / 4 * quarters
    }
    if senders[sender].gate.state != .closed || isFarBehind || (isTaken(3) && !isHere) { return 0 }
    guard isTaken(2) else { return nil }
    let half = min(configuration.maximumRecords, typicalSize.records(in: configuration.maximumBytes)) / 2
    return max(1, half / max(1, senders[sender].order.deviceCount))
  }

  /// Puts off what is likely to expire before it is back: it would take room that others need, and nobody is to wait
  /// for it. What has expired ends: it would come back only to be put off again, for as long as room is short.
  mutating func letGo(_ slot: Int, _ index: Int, for delay: Duration, at now: Moment, into effects: inout Effects) {
    guard now.wall < items[slot].expiresAt else {
      let (reason, status) = (items[slot].devices[index].reason, items[slot].devices[index].status)
      return finish(slot, index, as: .expired, reason: reason, status: status, at: now, into: &effects)
    }
    forgetOrder(slot, index, at: now)
    putOff(slot, index, for: delay, at: now, into: &effects)
  }

  /// Puts the device off until the outage of its service may be over.
  mutating func putOff(
    _ slot: Int, _ index: Int, inOrderFor delay: Duration, at now: Moment, into effects: inout Effects
  ) {
    remember(slot, index, due: now.uptime + delay.milliseconds)
    putOff(slot, index, for: delay, at: now, into: &effects)
  }

  /// How long a push that waits for its sender is put off: until right behind the one that comes to its device before
  /// it, so that all come back in their order and hardly any meets an older one that is still away. While the sender is
  /// stopped that is no earlier than a round after it was here before. One that would not live to see its turn comes
  /// back earlier, and more and more often. nil where it would expire even so, or there are no retry topics.
  func outageDelay(of slot: Int, _ index: Int, at now: Moment) -> Duration? {
    guard let shortest = topics.retries.first?.delay else { return nil }
    let lane = senders[items[slot].devices[index].sender]
    let isStopped = lane.gate.state != .closed
    let round = max(shortest, min(timeOfRound(of: lane, isBulk: items[slot].isBulk, at: now), Self.longestDelay))
    var delay = round
    if let place = place(slot, index, at: now), let before = place.dueBefore {
      // The pushes of a device share the round, but follow one another closely where they are few.
      let gap =
        isStopped ? min(round / place.count, .seconds(1) / Self.rounds * lane.order.deviceCount) : Self.answerTime
      let away = Duration.milliseconds(before - now.uptime)
      let behind = min(away + gap, max(away, round * 2), Self.longestDelay)
      delay = max(isStopped && place.isRemembered ? round : shortest, behind)
    }
    let remaining = items[slot].expiresAt - now.wall - Self.lastCall
    if delay + lateness(of: delay) < remaining { return delay }
    // Late in its life, and so seldom: whenever the service comes back, it is tried once more.
    let last = max(shortest, min(remaining / 4 * 3, Self.longestLastDelay))
    return last + lateness(of: last) < remaining ? last : nil
  }

  /// How much later than that what is put off for so long may come back.
  func lateness(of delay: Duration) -> Duration {
    topics.retry(for: delay).map { RetryPump.lateness(of: $0.delay) } ?? .zero
  }

  /// How long all that waits for the sender takes to go round once: the less it is, the sooner all of it is back after
  /// the outage, and the more, the longer, so that what goes round leaves room for everything else; but no longer than
  /// half of what the outage has lasted, unless too many came back a second then. Of broadcasts, of which nothing is
  /// remembered, it is that half: it may be much, and is late by no more.
  private func timeOfRound(of lane: SenderLane, isBulk: Bool, at now: Moment) -> Duration {
    func time(at rounds: Int) -> Duration { .seconds(lane.order.count) / rounds }
    guard lane.gate.state != .closed else { return time(at: Self.mostRounds) }
    let half = Duration.milliseconds(now.uptime - lane.gate.openedAt) / 2
    if isBulk { return half }
    // Of more than are counted nobody knows how many they are.
    return max(time(at: Self.mostRounds), lane.order.isFull ? half : min(time(at: Self.rounds), half))
  }

  /// What waits for a sender that is stopped is put off, oldest first, but for a few, each of another device, that can
  /// try whether it works again.
  ///
  /// They try in the order in which they have come, whatever their age: if the oldest went before, those behind it
  /// would stay for as long as the outage lasts, and with them the positions of their partitions. Those that were
  /// refused already come after them.
  mutating func putOffWhatIsStopped(at now: Moment, into effects: inout Effects) {
    guard let shortest = topics.retries.first?.delay else { return }
    let isShortOfRoom = isShortOfRoom
    for sender in senders.indices where senders[sender].gate.state != .closed {
      var (trying, refused, leaving): ([Ticket], [Ticket], [Ticket]) = ([], [], [])
      var largeSlots = Set<Int>()
      for ticket in senders[sender].queue.removeAll() {
        guard let device = device(ticket), device.phase == .queued else { continue }
        let (slot, index) = (ticket.slot, ticket.device)
        let isLarge = items[slot].devices.count > Self.mostDevicesKept
        // A page keeps none, for all of its broadcast waits for it, nor does what it has put off: that has the room
        // that is for all others.
        if isFarBehind || items[slot].isBulk {
          leaving.append(ticket)
        } else if device.heldAt != nil, refused.count < Self.refusedKept,
          // Of another record that is large one, of a few such: they would take all of the room. If the fault is its
          // own, only one that is kept shows it.
          !isLarge || (largeSlots.count < Self.probesKept && largeSlots.insert(slot).inserted)
        {
          refused.append(ticket)
          remember(slot, index, due: now.uptime)
        } else if device.heldAt == nil, !isLarge, trying.count < Self.probesKept,
          older(than: slot, index, at: now, limit: 1) == 0
        {
          trying.append(ticket)
          remember(slot, index, due: now.uptime)
        } else {
          leaving.append(ticket)
        }
      }
      for ticket in trying + refused { senders[sender].queue.append(ticket) }
      for ticket in oldestFirst(leaving) {
        // A device may be in the queue twice, where its page was paused and resumed meanwhile.
        guard phase(of: ticket) == .queued else { continue }
        guard let delay = outageDelay(of: ticket.slot, ticket.device, at: now) else {
          if isShortOfRoom {
            letGo(ticket.slot, ticket.device, for: shortest, at: now, into: &effects)
            continue
          }
          remember(ticket.slot, ticket.device, due: now.uptime)
          senders[sender].queue.append(ticket)
          continue
        }
        putOff(ticket.slot, ticket.device, inOrderFor: delay, at: now, into: &effects)
      }
    }
  }

  /// What is not counted against the limits of what is held, because nobody can hurry it: records whose pushes a
  /// service has that says nothing. No more than as much again, which then lasts until their time is up; what queues
  /// behind them is put off. How many records and bytes a push stands for is an estimate: one that has several on their
  /// way there is counted for each, and weighs as much as any other.
  var excused: (records: Int, bytes: Int) {
    var pushes = 0
    for sender in senders.indices where senders[sender].isSilent || senders[sender].gate.state != .closed {
      pushes += max(0, senders[sender].unanswered - senders[sender].bulkInFlight)
    }
    guard pushes > 0, records > 0 else { return (0, 0) }
    // All that is held must find a slot.
    let excused = min(pushes, records, configuration.maximumRecords, Ticket.maximumSlots / 8)
    return (excused, min(bytes / records * excused, configuration.maximumBytes))
  }

  /// Whether what is held leaves little room for more.
  var isShortOfRoom: Bool {
    records > configuration.maximumRecords * 3 / 4 || bytes > configuration.maximumBytes / 4 * 3
  }

  /// The sender works again: what waits for it in memory has its turn as what was put off has.
  mutating func keepOrder(of sender: Int, at now: Moment) {
    for ticket in senders[sender].queue.tickets where phase(of: ticket) == .queued {
      remember(ticket.slot, ticket.device, due: now.uptime)
    }
  }

  /// How many pushes come to the device before that one; none where that does not matter. Counts no further than to
  /// `limit`.
  private func older(than slot: Int, _ index: Int, at now: Moment, limit: Int) -> Int {
    guard let send = items[slot].send, !items[slot].isBulk else { return 0 }
    let device = items[slot].devices[index]
    return senders[device.sender].order.older(
      than: send.identity, acceptedAt: send.acceptedAt, to: device.target.registration, at: now.uptime, limit: limit)
  }

  /// Where the push stands among those that its device is kept from; nil where that does not matter.
  private func place(_ slot: Int, _ index: Int, at now: Moment) -> OutageOrder.Place? {
    guard let send = items[slot].send, send.audience.isOneUser, !items[slot].isBulk else { return nil }
    let device = items[slot].devices[index]
    return senders[device.sender].order.place(
      send.identity, acceptedAt: send.acceptedAt, to: device.target.registration, at: now.uptime)
  }

  private func oldestFirst(_ tickets: [Ticket]) -> [Ticket] {
    let dated = tickets.enumerated().map { number, ticket in
      (ticket, items[ticket.slot].send?.acceptedAt ?? UnixTime(milliseconds: 0), number)
    }
    return dated.sorted { ($0.1, $0.2) < ($1.1, $1.2) }.map(\.0)
  }
}

extension Audience {
  /// Whether it is one user, whose sends stay in order: they have one record key.
  fileprivate var isOneUser: Bool {
    switch self {
    case .user: true
    case .tag(let tag): Tag.user(of: tag) != nil
    case .registration, .device, .tags, .expression, .everyone: false
    }
  }
}
