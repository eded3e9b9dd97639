import FanfareCore
import RDKafka

/// Writes work that must wait longer than the worker's memory allows to a retry topic until it is
/// due.
///
/// The item's part of the send has no status record before that, so the send stays open and counts once. The record's
/// own offset settles as soon as Kafka has the deferred part.
///
/// After an outage the oldest push goes first: delayed pushes to a device are sent in the order of acceptance, one
/// after another, and a younger send waits for them. Only this worker knows that order. Deferred records come back to
/// it while it owns their partition, because their key stays the same. So the order of sends to users survives
/// deferral, but neither the end of the worker nor a change of the partition's owner.
extension Dispatcher {
  /// How many pushes a stopped platform keeps in memory as probes.
  private static let probesKept = 4
  /// An item with more devices than this keeps none: it takes the room of many.
  private static let mostDevicesKept = 16

  /// Defers a device. The item settles with its last open device.
  mutating func deferDevice(_ slot: Int, _ index: Int, for delay: Duration) {
    delayOrder(slot, index, by: delay)
    items[slot][device: index].postpone(until: now.uptime + delay.milliseconds)
    let sender = items[slot].devices[index].sender
    if sender >= 0 { effects.tallies.deferrals.append(sender) }
    passFirstAttempt(slot, index)
    closeDevice(slot)
  }

  /// Defers a device of a platform for which this worker has no sender: another worker, or this one after a change of
  /// its configuration, may have it. The send ends as expired if none ever does.
  mutating func deferUnserved(_ slot: Int, _ index: Int) {
    let place = SenderTable.place(hub: items[slot].hub, platform: items[slot].devices[index].target.platform)
    if unserved.note(place, at: now.uptime) { effects.alarm(.senderMissing(sender: place)) }
    items[slot][device: index].refused(reason: "NoSender", status: 0)
    let life = items[slot].expiresAt - now.wall
    guard life > .zero else { return expire(slot, index) }
    // The records of a broadcast are large, so they return rarely; those of sends ever more rarely.
    let delay =
      items[slot].isBroadcast
      ? DeferralPolicy.longestDelay
      : min(DeferralPolicy.unservedDelay * ((items[slot].resumed?.deferrals ?? 0) + 1), DeferralPolicy.longestDelay)
    effects.tallies.deferrals.append(place)
    deferDevice(slot, index, for: min(delay, life))
  }

  /// Defers a device until the outage of its service may be over, and keeps its place in the order.
  mutating func deferInOrder(_ slot: Int, _ index: Int, for delay: Duration) {
    remember(slot, index, due: now.uptime + delay.milliseconds)
    deferDevice(slot, index, for: delay)
  }

  /// Defers a device that is likely to expire before it returns, because others need its room.
  /// No other push waits for it. If it has expired, it ends: otherwise it would be deferred repeatedly while room is
  /// short.
  private mutating func deferAtRisk(_ slot: Int, _ index: Int, for delay: Duration) {
    guard now.wall < items[slot].expiresAt else { return expire(slot, index) }
    forgetOrder(slot, index)
    deferDevice(slot, index, for: delay)
  }

  /// How long to defer a push that waits for its platform: see `DeferralPolicy`.
  func outageDelay(of slot: Int, _ index: Int) -> Duration? {
    let sender = items[slot].devices[index].sender
    return deferral.outageDelay(
      lanes[sender], before: before(slot, index)?.due, isBroadcast: items[slot].isBroadcast,
      life: items[slot].expiresAt - now.wall, at: now)
  }

  // The order of deferred pushes.

  /// Remembers that an outage delays the push, if the order applies to it.
  /// Returns whether it is remembered.
  @discardableResult
  private mutating func remember(_ slot: Int, _ index: Int, due: Int64, waiting: Ticket? = nil) -> Bool {
    guard let push = items[slot].orderedPush(index) else { return false }
    return lanes[items[slot].devices[index].sender].remember(push, due: due, waiting: waiting)
  }

  /// Forgets a push that has ended or waits for a reason of its own: no other push waits for it.
  mutating func forgetOrder(_ slot: Int, _ index: Int) {
    let sender = items[slot].devices[index].sender
    guard sender >= 0, !lanes[sender].order.isEmpty, let push = items[slot].orderedPush(index) else { return }
    if let next = lanes[sender].forget(push, at: now.uptime) { wake(next) }
  }

  /// Changes the due time of the push if an outage delays it.
  private mutating func delayOrder(_ slot: Int, _ index: Int, by delay: Duration) {
    let sender = items[slot].devices[index].sender
    guard sender >= 0, !lanes[sender].order.isEmpty, let push = items[slot].orderedPush(index) else { return }
    lanes[sender].delay(push, due: now.uptime + max(0, delay.milliseconds))
  }

  /// Updates the order for a push that waits because of this outcome.
  /// Younger pushes still wait for a probe that failed.
  mutating func keepOrder(_ slot: Int, _ index: Int, during delay: Duration, _ outcome: PushOutcome) {
    guard outcome.isOutage, delay <= DeferralPolicy.longestDelay / 5 else {
      return forgetOrder(slot, index)
    }
    delayOrder(slot, index, by: delay)
  }

  /// Remembers the pushes that waited in memory for a platform that works again, in the order of
  /// deferred pushes.
  mutating func rememberQueue(of sender: Int) {
    for ticket in lanes[sender].queued where items.phase(of: ticket) == .queued {
      remember(ticket.slot, ticket.device, due: now.uptime)
    }
  }

  /// Delays a push that would precede an older one to the same device. Returns whether it does.
  ///
  /// It rests until the older one has ended, if that is here or comes back soon; otherwise it is deferred behind it.
  mutating func waitsItsTurn(_ ticket: Ticket) -> Bool {
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = items[slot].devices[index].sender
    let life = items[slot].expiresAt - now.wall
    // Better before an older one than never. An expired push ends at once.
    guard let before = before(slot, index), life > (lanes[sender].isStopped ? .zero : DeferralPolicy.lastCall)
    else { return false }
    let longest = deferral.longestRest.milliseconds
    // With half of the room taken, a push waits only for one that is here: those that come back need the room.
    let comesSoon =
      before.due - now.uptime <= longest && !items.held.exceeds(quarters: 2, of: configuration.limits)
    if !(before.isHere || comesSoon) || mayKeepNoneWaiting(sender), let delay = outageDelay(of: slot, index) {
      deferInOrder(slot, index, for: delay)
      return true
    }
    let due = now.uptime + min(longest, max((life - DeferralPolicy.lastCall).milliseconds, 1))
    guard remember(slot, index, due: due, waiting: ticket) else { return false }
    rest(ticket, until: due)
    return true
  }

  /// Whether pushes that wait for older ones are deferred instead: the platform is stopped, or room is short.
  private func mayKeepNoneWaiting(_ sender: Int) -> Bool {
    lanes[sender].isStopped || partitions.spans.isFarBehind || items.held.isShortOfRoom(configuration.limits)
  }

  /// Looks again at the pushes that wait for older ones: whether those have come back in time, and whether there still
  /// is room to wait.
  mutating func sweepOrder() {
    for sender in lanes.indices where !lanes[sender].order.isEmpty {
      for ticket in lanes[sender].forgetOverdue(at: now.uptime) { wake(ticket) }
      guard mayKeepNoneWaiting(sender) else { continue }
      for ticket in lanes[sender].takeWaiting() { wake(ticket) }
    }
  }

  /// The nearest older push to the device; nil: none is before this one.
  private func before(_ slot: Int, _ index: Int) -> DeferredOrder.Before? {
    let sender = items[slot].devices[index].sender
    guard !lanes[sender].order.isEmpty, let push = items[slot].orderedPush(index) else { return nil }
    return lanes[sender].before(push, at: now.uptime)
  }

  // Sweeps.

  /// Defers the pushes that wait for stopped platforms, oldest first.
  /// A few, each to another device, stay as probes.
  ///
  /// Probes go in the order of arrival, whatever their age. If the oldest send went first, those behind it would stay
  /// for the whole outage and hold the positions of their partitions.
  mutating func deferStopped() {
    let isShortOfRoom = items.held.isShortOfRoom(configuration.limits)
    for sender in lanes.indices where lanes[sender].isStopped {
      let leaving = keepProbes(of: sender)
      for ticket in oldestFirst(leaving) {
        // A device may be queued twice, if its page was paused and resumed meanwhile.
        guard items.phase(of: ticket) == .queued else { continue }
        if let delay = outageDelay(of: ticket.slot, ticket.device) {
          deferInOrder(ticket.slot, ticket.device, for: delay)
        } else if isShortOfRoom {
          deferAtRisk(ticket.slot, ticket.device, for: deferral.shortest)
        } else {
          lanes[sender].enqueue(ticket)
        }
      }
    }
  }

  /// Keeps the probes in the queue of a stopped platform and takes out all other pushes.
  /// Pushes that it has refused are the last choice: a platform that refuses only them would stay stopped.
  private mutating func keepProbes(of sender: Int) -> [Ticket] {
    let waiting = lanes[sender].takeQueue().filter { items.phase(of: $0) == .queued }
    func wasHeld(_ ticket: Ticket) -> Bool { items[ticket.slot].devices[ticket.device].history.isHeld }
    for ticket in waiting { remember(ticket.slot, ticket.device, due: now.uptime) }
    var (kept, leaving): ([Ticket], [Ticket]) = ([], [])
    for ticket in waiting.filter({ !wasHeld($0) }) + waiting.filter(wasHeld) {
      let (slot, index) = (ticket.slot, ticket.device)
      // A page keeps none: others wait for its turn.
      if !items[slot].isBroadcast, !partitions.spans.isFarBehind, items[slot].devices.count <= Self.mostDevicesKept,
        kept.count < Self.probesKept, before(slot, index) == nil
      {
        kept.append(ticket)
      } else {
        leaving.append(ticket)
      }
    }
    for ticket in kept { lanes[sender].enqueue(ticket) }
    return leaving
  }

  private func oldestFirst(_ tickets: [Ticket]) -> [Ticket] {
    let dated = tickets.enumerated().map { number, ticket in
      (ticket, items[ticket.slot].send?.acceptedAt ?? UnixTime(milliseconds: 0), number)
    }
    return dated.sorted { ($0.1, $0.2) < ($1.1, $1.2) }.map(\.0)
  }

  /// Defers the end of each queue that exceeds the shared quota for the longest rest in memory: it
  /// would take the room of others. Pages stay: they are small, and otherwise a whole broadcast would go through the
  /// retry topics.
  /// `isSweep`: otherwise only queues with too many single sends are looked at, because all of these leave.
  mutating func deferOverQuota(isSweep: Bool = true) {
    for sender in lanes.indices where !lanes[sender].isStopped {
      guard let quota = lanes[sender].quota.quota else { continue }
      // Some stay however small the quota is: otherwise records that come back would leave again before their turn.
      let limit = quota.mostWaiting(configuration)
      guard (isSweep ? lanes[sender].queuedCount : lanes[sender].queuedSingles) > limit else { continue }
      let leaving = keepWithinQuota(of: sender, limit)
      for (number, ticket) in leaving.enumerated() where items.phase(of: ticket) == .queued {
        let delay = max(deferral.shortest, min(quota.time(of: limit + number + 1), DeferralPolicy.longestDelay))
        let back = delay + deferral.lateness(of: delay) + DeferralPolicy.lastCall
        if back < items[ticket.slot].expiresAt - now.wall {
          deferInOrder(ticket.slot, ticket.device, for: delay)
        } else if items.held.isShortOfRoom(configuration.limits) {
          // It would expire in the retry topic before its turn, and hardly gets a turn here.
          deferAtRisk(ticket.slot, ticket.device, for: deferral.shortest)
        } else {
          lanes[sender].enqueue(ticket)
        }
      }
    }
  }

  /// Keeps the first `limit` pushes of the queue and takes out the others.
  /// Each lane of the queue keeps its share, and the share that the other lane does not use.
  private mutating func keepWithinQuota(of sender: Int, _ limit: Int) -> [Ticket] {
    let (count, singles) = (lanes[sender].queuedCount, lanes[sender].queuedSingles)
    let share = limit / PlatformLane.broadcastPeriod
    var (singleRoom, broadcastRoom) = (max(limit - share, limit - (count - singles)), max(share, limit - singles))
    var leaving: [Ticket] = []
    for ticket in lanes[sender].takeQueue() where items.phase(of: ticket) == .queued {
      let stays = items[ticket.slot].isPage
      let hasRoom = ticket.isBroadcast ? broadcastRoom > 0 || stays : singleRoom > 0
      if ticket.isBroadcast { broadcastRoom -= 1 } else { singleRoom -= 1 }
      if hasRoom { lanes[sender].enqueue(ticket) } else { leaving.append(ticket) }
    }
    return leaving
  }

  /// Defers devices of partitions to be given back that wait beyond the deadline.
  /// The next owner of the record would otherwise repeat it for the devices that already have it.
  mutating func deferStuck() {
    let shortest = deferral.shortest
    for slot in items.indices
    where items[slot].phase == .dispatching && items[slot].hasStarted && partitions.isClosing(items[slot].origin) {
      for index in items[slot].devices.indices {
        // After its last device is deferred the item is settling, and its devices are gone.
        guard items[slot].phase == .dispatching else { break }
        let (phase, sender) = (items[slot].devices[index].phase, items[slot].devices[index].sender)
        let isStuck =
          phase == .resting || (phase == .queued && lanes[sender].isHeldUp(at: now))
        guard isStuck, now.wall + shortest < items[slot].expiresAt else { continue }
        deferDevice(slot, index, for: shortest)
      }
      // A deferred record that has come back with more devices than it can push to in that time.
      if broadcasts[page: slot]?.isReturned == true, now.wall + shortest < items[slot].expiresAt {
        takeRest(of: slot, deferredFor: shortest)
      }
    }
  }
}
