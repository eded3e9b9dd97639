import FanfareCore
import RDKafka

/// The intake: turns a record into an item whose devices are to be looked up.
extension Dispatcher {
  /// Takes a batch of records.
  /// Each becomes an item, joins the item of the same send, or is dead-lettered. Records of partitions that are not
  /// owned or are being given back are left to the next owner.
  mutating func take(_ batch: [ConsumedRecord]) {
    items.receive(batch, areSegments: batch.first.map { $0.topic == topics.segments } ?? true)
    for record in batch {
      guard let origin = partitions.begin(record) else { continue }
      begin(record, origin: origin, mayAskForHub: true)
    }
  }

  /// Makes an item of a record. `mayAskForHub`: whether a record of an unknown hub waits until the registry is asked
  /// for the hub; otherwise it is dead-lettered.
  private mutating func begin(_ record: ConsumedRecord, origin: Origin, mayAskForHub: Bool) {
    let written = record.timestamp >= 0 ? UnixTime(milliseconds: record.timestamp) : now.wall
    let incoming: Incoming
    do {
      incoming = try Incoming(record.value, written: written, at: now)
    } catch {
      return deadLetter(record, error: error, send: nil, origin: origin)
    }
    if let hub = table.number(of: incoming.send.hub) {
      switch incoming {
      case .send(let send): begin(send, hub: hub, record: record, origin: origin)
      case .retry(let retry): begin(retry, hub: hub, record: record, origin: origin)
      case .segment(let segment): begin(segment, hub: hub, record: record, origin: origin)
      }
    } else if mayAskForHub {
      // Devices of the hub may have been registered since the worker started.
      let slot = items.occupy(WorkItem.Source(origin: origin, bytes: record.value.count))
      unknownHubs.hold(record, of: incoming.send.hub, items.ticket(slot))
    } else {
      let error = RecordError(.unknownHub, "hub: not served by this deployment")
      let send = incoming.isWholeSend ? incoming.send : nil
      deadLetter(record, error: error, send: send, origin: origin)
    }
  }

  /// Handles the registry's answer which hubs have registrations: the held records of those begin, the others of which
  /// it was asked are dead-lettered.
  mutating func hubsListed(_ hubs: [HubName]) {
    let held = unknownHubs.take(knowing: Set(hubs))
    let new = Set(held.lazy.map(\.hub)).intersection(hubs).filter { table.number(of: $0) == nil }
    if !new.isEmpty { append(new.sorted { $0.rawValue < $1.rawValue }) }
    for held in held {
      let origin = items[held.ticket.slot].origin
      vacate(held.ticket.slot)
      begin(held.record, origin: origin, mayAskForHub: false)
    }
  }

  /// Makes an item of a send, unless the send is already known.
  private mutating func begin(_ send: SendRequest, hub: Int, record: ConsumedRecord, origin: Origin) {
    let bytes = record.value.count
    guard let slot = admit(send.identity, hub: hub, origin: origin, bytes: bytes) else { return }
    items[slot].hold(send, until: expiry(of: send), times: SendTimes(consumed: now.wall))
    beginTrace(slot, send)
    guard let lane = Self.lane(of: send, record: record) else { return resolve(slot) }
    if items.enter(slot, lane: lane) { resolve(slot) }
  }

  /// Begins the item's span if its send is sampled.
  mutating func beginTrace(_ slot: Int, _ send: SendRequest, isPage: Bool = false) {
    if traces.begin(slot, send, isPage: isPage, at: now.wall, using: &generator) { items[slot].trace() }
  }

  /// Puts a record into a slot; nil if its send is known: the record settles with the item that
  /// works on it, or at once.
  mutating func admit(
    _ id: SendID, hub: Int, origin: Origin, bytes: Int, as kind: WorkItem.Kind = .send
  ) -> Int? {
    switch items.admit(id, hub: hub, origin: origin, bytes: bytes, as: kind) {
    case .new(let slot): return slot
    case .joined: return nil
    case .settled:
      partitions.settle(origin)
      return nil
    }
  }

  /// When the send expires. No push of it is delivered from then on.
  func expiry(of send: SendRequest) -> UnixTime {
    send.acceptedAt + (send.timeToLive.map { .seconds($0) } ?? configuration.times.defaultTimeToLive)
  }

  /// The lane that keeps sends in order: by record key, or by user if there is no key; nil: none.
  private static func lane(of send: SendRequest, record: ConsumedRecord) -> UInt64? {
    if let key = record.key {
      // FNV-1a: a keyed hasher would cost more than the rest of the intake, and a collision only makes one send wait.
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      for byte in key { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      return hash
    }
    guard let tag = send.audience.tag, Tag.user(of: tag) != nil else { return nil }
    var hasher = Hasher()
    hasher.combine(send.hub)
    hasher.combine(tag)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// Begins to resolve an item.
  /// Large audiences have a queue of their own, so that they delay no small one.
  private mutating func resolve(_ slot: Int) {
    let ticket = items.ticket(slot)
    if items[slot].send?.isBroadcast == true { broadcasts.appendSurvey(ticket) } else { lookUps.append(ticket) }
  }

  /// Lets the next item of the lane start after this one's first attempts.
  mutating func advanceLane(_ slot: Int) {
    if let next = items.advanceLane(slot) { resolve(next) }
  }

  /// Notes that the device's first attempt has its outcome or cannot be made now.
  mutating func passFirstAttempt(_ slot: Int, _ index: Int) {
    if items[slot].passFirstAttempt(index) { advanceLane(slot) }
  }

  /// Writes a record to the dead-letter topic, and a status record if the send can be identified.
  /// The offset settles when Kafka has both.
  private mutating func deadLetter(_ record: ConsumedRecord, error: RecordError, send: SendRequest?, origin: Origin) {
    let place = DeadLetter.Origin(topic: record.topic, partition: record.partition, offset: record.offset)
    let letter = DeadLetter(
      reason: error.reason, detail: error.detail, origin: place, at: now.wall, key: record.key.map(Array.init),
      value: Array(record.value))
    let slot = items.occupy(WorkItem.Source(origin: origin, bytes: record.value.count))
    items.settle(slot, records: send == nil ? 1 : 2)
    effects.productions.append(
      Production(kind: .deadLetter(letter), ticket: items.ticket(slot)),
      ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded()))
    if let send {
      let status = StatusRecord(
        of: send, as: .deadLettered, devices: [], at: now.wall, times: SendTimes(consumed: now.wall))
      produce(status, of: .status, partition: record.partition, for: slot)
    }
    effects.tallies.deadLetters.append(error.reason)
    effects.alarm(.deadLettered(place, reason: error.reason, detail: error.detail))
  }
}

/// The content of a record.
private enum Incoming {
  case send(SendRequest)
  /// A deferred part of a send that has come back.
  case retry(RetryRecord)
  case segment(SegmentRecord)

  init(_ value: ArraySlice<UInt8>, written: UnixTime, at now: Moment) throws(RecordError) {
    do throws(RecordError) {
      self = .send(try SendRequest.decode(value, recordTime: written))
    } catch  where error.reason == .unknownType {
      // A faulty record fails with the error of its own type; a record of an unknown type with that of a send.
      do throws(RecordError) {
        self = .retry(try RetryRecord.decode(value, recordTime: written, now: now.wall))
        return
      } catch  where error.reason == .unknownType {}
      do throws(RecordError) {
        self = .segment(try SegmentRecord.decode(value, recordTime: written))
        return
      } catch  where error.reason == .unknownType {}
      throw error
    }
  }

  var send: SendRequest {
    switch self {
    case .send(let send): send
    case .retry(let retry): retry.send
    case .segment(let segment): segment.send
    }
  }

  /// Whether the record is its whole send.
  /// Other parts may be delivered by workers that know the hub.
  var isWholeSend: Bool {
    switch self {
    case .send: true
    case .retry(let retry): retry.parts == 1
    case .segment: false
    }
  }
}
