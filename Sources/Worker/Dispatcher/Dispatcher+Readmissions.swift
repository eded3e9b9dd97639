import FanfareCore
import RDKafka

/// Deferred records that have come back: their devices go on where they were, each after its owner was looked up again.
///
/// The record of a single send continues at once; so does that of an undivided broadcast, unless its broadcast was
/// paused or cancelled. A record that a page deferred is a page again: it waits for its turn beside the pages of the
/// segments, and keeps the same room, rate and controls.
extension Dispatcher {
  /// Takes in a deferred record that has come back.
  mutating func begin(_ retry: RetryRecord, hub: Int, record: ConsumedRecord, origin: Origin) {
    let bytes = record.value.count
    guard let slot = admit(retry.identity, hub: hub, origin: origin, bytes: bytes) else { return }
    guard retry.send.isBroadcast || isOfPage(retry) else { return resume(retry, in: slot) }
    broadcasts.begin(
      ReturnedRecords.Waiting(
        ticket: items.ticket(slot), retry: retry, bytes: bytes, isOfPage: isOfPage(retry),
        expiresAt: expiry(of: retry.send), since: now.uptime))
  }

  /// Continues the waiting records that need no turn, and defers again those that would take the room of others.
  mutating func readmit() {
    guard broadcasts.takeNews() else { return }
    let controls = broadcasts.controls
    while let next = broadcasts.returned.popNext(where: { next in
      controls[next.retry.broadcast].map { $0 != .running || !next.isOfPage } ?? false
    }) {
      guard items.isResolving(next.ticket) else { continue }
      let control = controls[next.retry.broadcast]
      if control == .paused, now.wall < next.expiresAt {
        deferAgain(next)
      } else if control == .cancelled || next.isOfPage {
        readmit(next)
      } else {
        resume(next.retry, in: next.ticket.slot)
      }
    }
    // One may wait, however large it is.
    var (bytes, records) = (configuration.limits.maximumBytes / 4, configuration.limits.maximumRecords / 4)
    guard broadcasts.returned.bytes > bytes || broadcasts.returned.count > records else { return }
    var isFirst = true
    deferAgain { next in
      (bytes, records) = (bytes - next.bytes, records - 1)
      defer { isFirst = false }
      return (bytes < 0 || records < 0) && !isFirst
    }
  }

  /// Defers again the records that have waited long for their turn, and all of them when reading has run far ahead.
  /// Meanwhile the positions of their partitions stand still.
  mutating func deferOverdueRecords() {
    let oldest = now.uptime - configuration.times.longestRest.milliseconds
    let isFarBehind = partitions.spans.isFarBehind
    deferAgain { isFarBehind || $0.since < oldest }
  }

  /// Defers again the waiting records to which that applies and that would come back before they expire.
  private mutating func deferAgain(where isToLeave: (ReturnedRecords.Waiting) -> Bool) {
    let back = deferral.backAgain(at: now)
    for next in broadcasts.returned.remove(where: { isToLeave($0) && back < $0.expiresAt })
    where items.isResolving(next.ticket) {
      deferAgain(next)
    }
  }

  /// Writes the record again: to come back soon, or, if its broadcast is paused, when the pause may be over.
  private mutating func deferAgain(_ next: ReturnedRecords.Waiting) {
    let broadcast = next.retry.broadcast
    let delay =
      broadcasts.controls[broadcast] == .paused
      ? deferral.delay(ofPaused: broadcast, until: next.expiresAt, at: now) : deferral.shortest
    var retry = next.retry
    if let rate = broadcasts.rates[broadcast] { retry.follow(rate) }
    items.settle(next.ticket.slot, records: 1)
    produce(retry.deferredAgain(until: now.wall + delay), for: next.ticket.slot)
  }

  /// Makes a record that a page deferred a page again, whose devices are known.
  @discardableResult
  mutating func readmit(_ next: ReturnedRecords.Waiting) -> Ticket {
    let (slot, retry) = (next.ticket.slot, next.retry)
    hold(retry, in: slot)
    items[slot].readmit()
    items[slot].follow(broadcasts.rates[retry.broadcast])
    // Those of a cancelled broadcast all end with the page.
    let isCut = broadcasts.controls[retry.broadcast] == .cancelled
    var (ready, others): ([DeviceProgress], [DeviceProgress]) = ([], [])
    for device in devices(of: retry, in: slot, rest: deferral.longestRest(isBroadcast: true)) {
      let isReady =
        isCut
        ? device.phase != .done : device.isOpen && device.sender >= 0 && lanes[device.sender].mayPush(at: now)
      if isReady { ready.append(device) } else { others.append(device) }
    }
    items.dispatch(slot, others, isBroadcast: next.isOfPage)
    let ticket = items.ticket(slot)
    broadcasts.open(OpenPage(returned: retry, devices: ready), ticket)
    begin(others.indices, of: slot)
    _ = control(slot, room: 0)
    return ticket
  }

  /// Continues all devices of the record at once.
  private mutating func resume(_ retry: RetryRecord, in slot: Int) {
    hold(retry, in: slot)
    items.dispatch(slot, devices(of: retry, in: slot, rest: configuration.times.longestRest))
    begin(items[slot].devices.indices, of: slot)
  }

  /// Holds the send of a record that has come back, and the part of it that the record stands for.
  private mutating func hold(_ retry: RetryRecord, in slot: Int) {
    var times = retry.times
    times.add(SendTimes(consumed: now.wall))
    items[slot].hold(retry.send, until: expiry(of: retry.send), times: times)
    beginTrace(slot, retry.send, isPage: isOfPage(retry))
    items[slot].resume(
      WorkItem.Resumed(
        part: retry.part, parts: retry.parts, attempt: retry.attempt, deferrals: retry.deferrals,
        cameEarly: cameEarly(retry), counts: retry.counts))
  }

  private func devices(of retry: RetryRecord, in slot: Int, rest: Duration) -> [DeviceProgress] {
    let hub = items[slot].hub
    return retry.devices.map { device in
      DeviceProgress(
        device, sender: table.sender(hub: hub, platform: device.platform), acceptedAt: retry.send.acceptedAt,
        longestRest: rest, at: now)
    }
  }

  /// Whether a page of a broadcast has deferred the record.
  ///
  /// The record of a broadcast with a single small page looks like that of an undivided send, and is treated as such.
  /// That is harmless: it has no more devices than such a send.
  private func isOfPage(_ retry: RetryRecord) -> Bool {
    let devices = retry.devices.count + retry.counts.total
    return retry.parts > 1
      || (retry.send.isBroadcast
        && (retry.send.maximumPerSecond != nil || devices > configuration.broadcasts.undividedDevices))
  }

  /// Whether the record came back more than `longestRest` too early: before its time and before the
  /// longest delay had passed.
  private func cameEarly(_ retry: RetryRecord) -> Bool {
    let longestHold = (retry.writtenAt ?? now.wall) + deferral.longest
    return min(retry.notBefore, longestHold) > now.wall + configuration.times.longestRest
  }
}

extension RetryRecord.Device {
  fileprivate var platform: Platform {
    switch self {
    case .done(let result): result.platform
    case .waiting(let device): device.platform
    }
  }
}
