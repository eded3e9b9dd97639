import DequeModule
import FanfareCore
import RDKafka

extension DispatchState {
  /// Records have come. Each becomes an item, joins the item of the same send, or is set aside; those of partitions
  /// that are not owned, or are being given back, are left to the next owner.
  mutating func take(_ batch: [ConsumedRecord], at now: Moment, into effects: inout Effects) {
    credit -= batch.count
    // Segments have a limit of their own, and come in batches of their own.
    if let first = batch.first, first.topic != topics.segments {
      typicalSize.observe(records: batch.count, bytes: batch.reduce(0) { $0 + $1.value.count })
    }
    for record in batch {
      guard let origin = ledger.begin(record) else { continue }
      let written = record.timestamp >= 0 ? UnixTime(milliseconds: record.timestamp) : now.wall
      let incoming: Incoming
      do {
        incoming = try decode(record.value, written: written, at: now)
      } catch {
        setAside(record, error: error, send: nil, origin: origin, at: now, into: &effects)
        continue
      }
      guard let hub = table.number(of: incoming.send.hub) else {
        let error = RecordError(.unknownHub, "hub: not served by this deployment")
        setAside(
          record, error: error, send: incoming.isWholeSend ? incoming.send : nil, origin: origin, at: now,
          into: &effects)
        continue
      }
      switch incoming {
      case .send(let send): begin(send, hub: hub, record: record, origin: origin)
      case .retry(let retry): resume(retry, hub: hub, record: record, origin: origin, at: now, into: &effects)
      case .segment(let segment): begin(segment, hub: hub, record: record, origin: origin, into: &effects)
      }
    }
  }

  /// What a record holds.
  private enum Incoming {
    case send(SendRequest)
    /// Part of a send that was put off and whose time has come.
    case retry(RetryRecord)
    case segment(SegmentRecord)

    var send: SendRequest {
      switch self {
      case .send(let send): send
      case .retry(let retry): retry.send
      case .segment(let segment): segment.send
      }
    }

    /// Whether what becomes of it is the end of all of its send. Other parts may have been delivered, or still be, by
    /// workers that know the hub.
    var isWholeSend: Bool {
      switch self {
      case .send: true
      case .retry(let retry): retry.parts == 1
      case .segment: false
      }
    }
  }

  private func decode(_ value: ArraySlice<UInt8>, written: UnixTime, at now: Moment) throws(RecordError) -> Incoming {
    do throws(RecordError) {
      return .send(try SendRequest.decode(value, recordTime: written))
    } catch  where error.reason == .unknownType {
      // A record that is faulty is told by what its own type asks of it; one of no type that belongs here, that it is
      // no send.
      do throws(RecordError) {
        return .retry(try RetryRecord.decode(value, recordTime: written, now: now.wall))
      } catch  where error.reason == .unknownType {}
      do throws(RecordError) {
        return .segment(try SegmentRecord.decode(value, recordTime: written))
      } catch  where error.reason == .unknownType {}
      throw error
    }
  }

  /// Makes an item of a send, unless it is known already.
  private mutating func begin(_ send: SendRequest, hub: Int, record: ConsumedRecord, origin: Origin) {
    let key = RecentSends.Key(id: send.identity, hub: Int32(hub))
    guard isNew(key, origin: origin) else { return }
    let slot = occupy(origin: origin, bytes: record.value.count)
    items[slot].key = key
    items[slot].hub = hub
    items[slot].expiresAt = expiry(of: send)
    let lane = Self.lane(of: send, record: record)
    items[slot].send = send
    guard let lane else { return start(slot) }
    items[slot].lane = lane
    if let tail = lanes.updateValue(Int32(slot), forKey: lane) {
      items[slot].phase = .queued
      items[Int(tail)].nextInLane = Int32(slot)
    } else {
      items[slot].leadsLane = true
      start(slot)
    }
  }

  /// Whether the next item is to be made of the record that says so. What is known of already settles: with the item
  /// that works on it, or at once.
  mutating func isNew(_ key: RecentSends.Key, origin: Origin) -> Bool {
    let slot = nextSlot
    let next = Ticket(slot: slot, generation: slot < items.count ? items[slot].generation : 0)
    guard let former = recent.open(key, as: next) else { return true }
    if isCurrent(former) { items[former.slot].followers.append(origin) } else { ledger.settle(origin) }
    return false
  }

  /// From when on nothing of the send is delivered any more.
  func expiry(of send: SendRequest) -> UnixTime {
    send.acceptedAt + (send.timeToLive.map { .seconds($0) } ?? configuration.defaultTimeToLive)
  }

  /// Which sends the send must not overtake: those of the same record key, or, where a producer set none, those to the
  /// same user. nil: none.
  private static func lane(of send: SendRequest, record: ConsumedRecord) -> UInt64? {
    if let key = record.key {
      // FNV-1a: a hasher with a key of its own would cost more than all the rest of the intake, and a collision only
      // makes one send wait.
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

  /// The item's turn in its lane has come.
  mutating func start(_ slot: Int) {
    items[slot].phase = .resolving
    // In queues of their own: what may be large must not hold up what is small.
    if items[slot].send?.isBroadcast == true { toSurvey.append(ticket(slot)) } else { toResolve.append(ticket(slot)) }
  }

  /// The item is through its first attempts: the next of its lane may start. Those given up while they waited are freed
  /// on the way.
  mutating func advanceLane(_ slot: Int) {
    guard items[slot].leadsLane else { return }
    items[slot].leadsLane = false
    let lane = items[slot].lane
    var next = Int(items[slot].nextInLane)
    items[slot].nextInLane = -1
    while next >= 0 {
      guard items[next].isAbandoned else {
        items[next].leadsLane = true
        return start(next)
      }
      let following = Int(items[next].nextInLane)
      vacate(next)
      next = following
    }
    lanes.removeValue(forKey: lane)
  }

  /// Sends a record to the dead-letter topic, with a status record if it is clear which send it was. Its offset settles
  /// when Kafka has both.
  private mutating func setAside(
    _ record: ConsumedRecord, error: RecordError, send: SendRequest?, origin: Origin, at now: Moment,
    into effects: inout Effects
  ) {
    let place = DeadLetter.Origin(topic: record.topic, partition: record.partition, offset: record.offset)
    let letter = DeadLetter(
      reason: error.reason, detail: error.detail, origin: place, at: now.wall, key: record.key.map(Array.init),
      value: Array(record.value))
    let slot = occupy(origin: origin, bytes: record.value.count)
    items[slot].phase = .settling
    items[slot].unacknowledged = 1
    effects.productions.append(
      Production(kind: .deadLetter(letter), ticket: ticket(slot)),
      ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded()))
    if let send {
      items[slot].unacknowledged = 2
      let status = StatusRecord(
        send: send.id, hub: send.hub, state: .deadLettered, sender: send.sender, audience: send.audience,
        acceptedAt: send.acceptedAt,
        settledAt: now.wall, devices: [], traceparent: send.traceparent)
      effects.productions.append(
        Production(kind: .status, ticket: ticket(slot)),
        ProducerRecord(
          topic: topics.status, partition: record.partition, key: Array(send.id.description.utf8),
          event: status.encoded()))
    }
    effects.tallies.deadLetters.append(error.reason)
    effects.alarm(.deadLettered(place, reason: error.reason, detail: error.detail))
  }

  /// The slot of the next new item.
  var nextSlot: Int { vacant.last ?? items.count }

  /// Puts a new item into a free slot. Whether it is a segment or a page stays as it is.
  mutating func occupy(origin: Origin, bytes: Int, as role: WorkItem.Role = .send) -> Int {
    let slot = nextSlot
    if vacant.popLast() == nil { items.append(WorkItem()) }
    items[slot].phase = .resolving
    items[slot].origin = origin
    items[slot].bytes = bytes
    items[slot].role = role
    count(slot, times: 1)
    return slot
  }

  /// Frees the item's slot.
  mutating func vacate(_ slot: Int) {
    count(slot, times: -1)
    devices -= items[slot].devices.count
    if case .returned(let room) = items[slot].role { giveBack(room, of: items[slot].hub) }
    let generation = items[slot].generation &+ 1
    items[slot] = WorkItem()
    items[slot].generation = generation
    vacant.append(slot)
  }

  private mutating func count(_ slot: Int, times: Int) {
    if items[slot].broadcast == nil {
      records += times
      bytes += times * items[slot].bytes
    } else {
      segmentsHeld += times
      segmentBytes += times * items[slot].bytes
    }
  }
}
