import FanfareCore
import RDKafka

/// Deferred records that have come back: their devices go on where they were, each after its owner
/// was looked up again. Records that a page has deferred also follow the control of their broadcast.
extension Dispatcher {
  /// Pushes that a broadcast's rate allows, from a moment on.
  struct Permits: Sendable {
    let count: Int
    let from: UnixTime
    let perSecond: Int

    /// How long the permits may be used: they are reserved one second at a time.
    static let span = Duration.seconds(1)
  }

  /// Takes in a deferred record that has come back.
  mutating func begin(_ retry: RetryRecord, hub: Int, record: ConsumedRecord, origin: Origin) {
    let bytes = record.value.count
    guard let slot = admit(retry.identity, hub: hub, origin: origin, bytes: bytes) else { return }
    if retry.send.isBroadcast {
      readmissions.keep(retry, bytes: bytes, for: slot)
      effects.questions.append(.control(items.ticket(slot), retry.broadcast))
    } else if items.held.devices < configuration.limits.maximumDevices, !readmissions.hasAwaitingDevices {
      resume(retry, in: slot)
    } else {
      readmissions.keep(retry, bytes: bytes, for: slot)
      readmissions.awaitDevices(items.ticket(slot))
    }
  }

  /// Continues records that waited for room for their devices, as far as there is room now.
  mutating func readmitAwaitingDevices() {
    while items.held.devices < configuration.limits.maximumDevices, let ticket = readmissions.popAwaitingDevices() {
      guard items.isResolving(ticket), let retry = readmissions.take(ticket.slot) else { continue }
      resume(retry, in: ticket.slot)
    }
  }

  /// The control of the broadcast whose record has come back is known.
  mutating func noteControl(_ ticket: Ticket, _ control: BroadcastControl) {
    let slot = ticket.slot
    guard items.isResolving(ticket) else { return }
    readmissions.follow(control.rate, slot)
    guard let record = readmissions.record(of: slot) else { return }
    let retry = record.retry
    switch control.state {
    case .running:
      deferral.endPause(of: retry.broadcast)
      awaitSlot(ticket, record)
    case .paused:
      // An expired record ends like any other; one that expires meanwhile is not pushed first.
      let expiresAt = expiry(of: retry.send)
      guard now.wall < expiresAt else { return readmissions.awaitDevices(ticket) }
      let delay = deferral.delay(ofPaused: retry.broadcast, until: expiresAt, at: now)
      deferAgain(slot, for: delay)
    case .cancelled:
      deferral.endPause(of: retry.broadcast)
      _ = readmissions.take(slot)
      items.settle(slot, records: 1)
      let status = StatusRecord(
        of: retry.send, as: .cancelled, pagePart(retry.statusPart, of: retry.send),
        devices: retry.devices.compactMap(\.whenCancelled), at: now.wall, times: retry.times)
      produce(status, of: .page, for: slot)
    }
  }

  /// Lets a page's record wait for a slot, or defers it again if the waiting records would take the
  /// room of others.
  private mutating func awaitSlot(_ ticket: Ticket, _ record: Readmissions.Record) {
    let retry = record.retry
    guard let room = room(for: retry, in: ticket.slot) else { return readmissions.awaitDevices(ticket) }
    let expiresAt = expiry(of: retry.send)
    if readmissions.isCrowded(by: record.bytes, limits: configuration.limits),
      deferral.backAgain(at: now) < expiresAt
    {
      return deferAgain(ticket.slot, for: deferral.shortest)
    }
    readmissions.awaitSlot(
      Readmissions.Awaiting(
        ticket: ticket, slot: room, bytes: record.bytes, since: now.uptime, expiresAt: expiresAt))
  }

  /// Defers again the records that have waited long for a slot, and all of them when reading has
  /// run far ahead. Meanwhile the positions of their partitions stand still, and the worker does not ask whether their
  /// broadcast still runs. Records that would expire before they return stay.
  mutating func deferAwaitingSlot() {
    guard !readmissions.awaitingSlot.isEmpty else { return }
    let overdue = readmissions.takeOverdue(
      items: items, since: now.uptime - configuration.times.longestRest.milliseconds, all: partitions.spans.isFarBehind,
      back: deferral.backAgain(at: now))
    for next in overdue { deferAgain(next.ticket.slot, for: deferral.shortest) }
  }

  /// Writes the item's record again unchanged, to come back after that delay.
  private mutating func deferAgain(_ slot: Int, for delay: Duration) {
    guard let retry = readmissions.take(slot)?.deferredAgain(until: now.wall + delay) else { return }
    items.settle(slot, records: 1)
    produce(retry, for: slot)
  }

  /// The slot that the record takes; nil if none of its devices can be pushed to soon, or no page
  /// deferred it.
  private func room(for retry: RetryRecord, in slot: Int) -> ReadmissionSlot? {
    guard isOfPage(retry) else { return nil }
    let rate = retry.send.maximumPerSecond
    let soon = now.wall + (rate == nil ? configuration.times.longestRest : Permits.span)
    var (count, platforms) = (0, PlatformSet())
    for case .waiting(let device) in retry.devices where device.notBefore <= soon {
      let sender = table.sender(hub: items[slot].hub, platform: device.platform)
      guard sender >= 0, lanes[sender].mayPush(at: now) else { continue }
      count += 1
      platforms.formUnion(PlatformSet(device.platform))
    }
    guard count > 0 else { return nil }
    return ReadmissionSlot(
      weight: min(count, rate ?? count), platforms: platforms, rated: rate == nil ? nil : retry.broadcast)
  }

  /// Whether a page of a broadcast has deferred the record.
  ///
  /// The record of a broadcast with a single small page looks like that of an undivided send, and is treated as such.
  /// That is harmless: it has no more devices than such a send.
  private func isOfPage(_ retry: RetryRecord) -> Bool {
    retry.send.isBroadcast
      && (retry.parts > 1 || retry.send.maximumPerSecond != nil
        || retry.devices.count + retry.counts.total > configuration.broadcasts.undividedDevices)
  }

  /// Continues pages' records as far as there are slots, and asks for permits for those of
  /// broadcasts with a rate.
  mutating func readmitAwaitingSlot() {
    while items.held.devices < configuration.limits.maximumDevices,
      let next = readmissions.nextAdmission(
        items: items, hubs: table.hubs.count, most: configuration.broadcasts.pageDevices)
    {
      let slot = next.ticket.slot
      guard items.isResolving(next.ticket), let record = readmissions.record(of: slot) else { continue }
      let retry = record.retry
      holdRoom(for: retry, in: slot, next.slot)
      guard let rate = retry.send.maximumPerSecond, now.wall < expiry(of: retry.send) else {
        _ = readmissions.take(slot)
        resume(retry, in: slot)
        continue
      }
      // At most a second's permits: the workers reserve one behind the other, so the last one's permits lie as far
      // ahead as the reservations of all workers are long.
      let count = room(for: retry, in: slot)?.weight ?? 1
      effects.questions.append(.permits(next.ticket, count, retry.broadcast, perSecond: rate))
    }
  }

  /// The permits of a readmitted record are known.
  mutating func permitted(_ ticket: Ticket, _ permits: Permits) {
    guard items.isResolving(ticket), let retry = readmissions.take(ticket.slot) else { return }
    resume(retry, in: ticket.slot, permits: permits)
  }

  /// Remembers the part of the send and takes the readmission slot until the item is vacated.
  /// Calling it again has no effect.
  private mutating func holdRoom(for retry: RetryRecord, in slot: Int, _ room: ReadmissionSlot?) {
    guard items[slot].resumed == nil else { return }
    items[slot].resume(
      WorkItem.Resumed(
        part: retry.part, parts: retry.parts, attempt: retry.attempt, deferrals: retry.deferrals,
        cameEarly: cameEarly(retry), counts: retry.counts),
      isReadmitted: room != nil)
    if let room { readmissions.occupy(room, for: slot, of: items[slot].hub) }
  }

  /// Whether the record came back more than `longestRest` too early: before its time and before the
  /// longest delay had passed.
  private func cameEarly(_ retry: RetryRecord) -> Bool {
    let longestHold = (retry.writtenAt ?? now.wall) + deferral.longest
    return min(retry.notBefore, longestHold) > now.wall + configuration.times.longestRest
  }

  /// Continues the record's devices.
  /// With a rate, it pushes only to devices with a permit, one after another.
  private mutating func resume(_ retry: RetryRecord, in slot: Int, permits: Permits? = nil) {
    let hub = items[slot].hub
    var times = retry.times
    times.add(SendTimes(consumed: now.wall))
    items[slot].hold(retry.send, until: expiry(of: retry.send), times: times)
    beginTrace(slot, retry.send, isPage: retry.parts > 1 || isOfPage(retry))
    holdRoom(for: retry, in: slot, nil)
    // Not kept in a variable: a second reference would copy all devices with the first change.
    items.dispatch(
      slot,
      retry.devices.map { device in
        DeviceProgress(
          device, sender: table.sender(hub: hub, platform: device.platform), acceptedAt: retry.send.acceptedAt,
          longestRest: configuration.times.longestRest, at: now)
      }, isBroadcast: retry.parts > 1 || isOfPage(retry))
    if let rate = retry.send.maximumPerSecond, isOfPage(retry), now.wall < items[slot].expiresAt {
      space(slot, permits ?? Permits(count: 0, from: now.wall, perSecond: rate))
    }
    // Every device stays open until the last one is looked at here: closing the last open one settles the item.
    for index in items[slot].devices.indices {
      let (phase, sender, due) = (
        items[slot].devices[index].phase, items[slot].devices[index].sender, items[slot].devices[index].due
      )
      switch phase {
      case .done: closeDevice(slot)
      case .deferred: deferDevice(slot, index, for: .milliseconds(due - now.uptime))
      case .queued where sender < 0, .resting where sender < 0:
        deferUnserved(slot, index)
      case .withdrawn: break
      case .resting: lanes[sender].rest(items.ticket(slot, device: index), until: due)
      case .queued, .checking, .inFlight:
        // At once, not with the next sweep: there is no room here for more than one page.
        if items[slot].isBroadcast, !lanes[sender].mayPush(at: now), let delay = outageDelay(of: slot, index) {
          deferDevice(slot, index, for: delay)
        } else {
          enqueue(slot, index)
        }
      }
    }
  }

  /// Spaces the devices that can be pushed to within the permits' second, as the broadcast's rate
  /// allows. Devices without a permit are deferred, and ask again when they come back: a permit that was kept for them
  /// until then would be used beside those of that time, which are the whole rate already.
  /// The same applies to devices whose time is too far ahead to rest here, and to those of stopped platforms, when the
  /// outage may be over.
  private mutating func space(_ slot: Int, _ permits: Permits) {
    // Permits far ahead were reserved before the clock was set back.
    let isAhead = permits.from > now.wall + PushQuota.horizon
    let from = now.uptime + (isAhead ? 0 : (permits.from - now.wall).milliseconds)
    let rest = max(now.uptime + deferral.shortest.milliseconds, from + Int64(permits.count * 1000 / permits.perSecond))
    var number = 0
    for index in items[slot].devices.indices {
      let device = items[slot].devices[index]
      guard device.phase == .queued || device.phase == .resting, device.sender >= 0 else { continue }
      let mayPush = lanes[device.sender].mayPush(at: now)
      let isPermitted =
        number < permits.count && mayPush && device.due <= max(now.uptime, from) + Permits.span.milliseconds
      let later = mayPush ? rest : now.uptime + (outageDelay(of: slot, index) ?? deferral.shortest).milliseconds
      let due = max(device.due, isPermitted ? from + Int64(number * 1000 / permits.perSecond) : later)
      let isToLeave = !isPermitted || due > now.uptime + configuration.times.longestRest.milliseconds
      items[slot][device: index].reschedule(
        to: due, isToLeave ? .deferred : due > now.uptime ? .resting : .queued)
      if isPermitted { number += 1 }
    }
  }
}

extension RetryRecord {
  fileprivate var broadcast: BroadcastID { BroadcastID(hub: send.hub, send: send.identity) }
}

extension RetryRecord.Device {
  fileprivate var platform: Platform {
    switch self {
    case .done(let result): result.platform
    case .waiting(let device): device.platform
    }
  }
}
