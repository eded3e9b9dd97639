import FanfareCore
import RDKafka

/// Settlement: from a device's result to the settled offset.
extension Dispatcher {
  /// Gives the device its result.
  mutating func finish(_ slot: Int, _ index: Int, as outcome: DeviceResult.Outcome, reason: String, status: Int) {
    forgetOrder(slot, index)
    items[slot][device: index].finish(as: outcome, reason: reason, status: status)
    if let acceptedAt = items[slot].send?.acceptedAt {
      effects.tallies.results.append(
        Tallies.Result(
          sender: SenderTable.place(hub: items[slot].hub, platform: items[slot].devices[index].target.platform),
          outcome: outcome, reason: reason, latency: max(0, now.wall.milliseconds - acceptedAt.milliseconds)))
    }
    if items[slot].isTraced {
      traces.finished(slot, on: items[slot].devices[index].target.platform, as: outcome, status: status, at: now.wall)
    }
    passFirstAttempt(slot, index)
    closeDevice(slot)
  }

  /// Ends a device whose send has expired.
  mutating func expire(_ slot: Int, _ index: Int) {
    let (reason, status) = (items[slot].devices[index].reason, items[slot].devices[index].status)
    finish(slot, index, as: .expired, reason: reason, status: status)
  }

  /// Closes a device that has its result or is deferred.
  /// The item settles with its last open device; a page only after its last device was looked up, too: see
  /// `walkSegments`.
  mutating func closeDevice(_ slot: Int) {
    guard items[slot].closeDevice(), !items[slot].isPage else { return }
    settle(slot, as: endState(slot))
  }

  /// The state in which the item ends whose devices are all closed.
  func endState(_ slot: Int) -> StatusRecord.State {
    let wasNeverSent =
      !items[slot].hasStarted && (items[slot].resumed?.counts.isEmpty ?? true)
      && items[slot].devices.allSatisfy { $0.phase == .done && $0.outcome == .expired && $0.history.attempts == 0 }
    return wasNeverSent ? .expired : .settled
  }

  /// Ends the item: writes its status and retry records, and frees what is not needed until Kafka
  /// has them.
  mutating func settle(_ slot: Int, as state: StatusRecord.State) {
    guard let send = items[slot].send else { return }
    let resumed = items[slot].resumed
    let pieces = StatusParts(
      devices: items[slot].devices.count, limit: resumed == nil ? configuration.devicesPerStatus : Int.max)
    var part = StatusPart(
      parts: resumed?.parts ?? pieces.count, attempt: resumed?.attempt, counts: resumed?.counts ?? OutcomeCounts())
    // A repetition after a crash may find other devices and need other parts: the attempt's id tells the two apart.
    if resumed == nil, part.parts > 1 { part.attempt = DispatchID.random(using: &generator) }
    let traceparent = items[slot].isTraced ? traces.traceparent(of: slot) : nil
    var isDeferred = false
    for number in 0..<pieces.count {
      var devices = items[slot].devices[pieces[number]]
      // No push was sent to them, so they have no result.
      if items[slot].kind == .readmitted { devices.removeAll { $0.phase == .withdrawn } }
      part.part = resumed?.part ?? number
      if devices.contains(where: { $0.phase == .deferred }) {
        isDeferred = true
        let retry = RetryRecord(
          devices, of: send, part, deferrals: (resumed?.deferrals ?? 0) + 1, cameEarly: resumed?.cameEarly ?? false,
          times: items[slot].times, at: now)
        produce(retry, for: slot)
      } else {
        let status = StatusRecord(
          of: send, as: state, part,
          devices: devices.count == 1 || items[slot].isBroadcast
            ? devices.map { $0.result } : devices.map { $0.timedResult(at: now) },
          at: now.wall, traceparent: traceparent, times: items[slot].times)
        produceStatus(status, for: slot)
      }
    }
    if items[slot].isTraced { endTrace(slot, of: send, as: isDeferred ? nil : state) }
    items.settle(slot, records: pieces.count)
    // Counted once for each send. A divided one counts at its first settlement alone (`resumed` is nil), because each
    // of its deferred parts comes back as a record of its own; an undivided one counts at its last.
    if !isDeferred, resumed == nil || part.parts == 1 {
      effects.tallies.settled.append(Tallies.Settled(hub: items[slot].hub, state: state))
    }
    advanceLane(slot)
  }

  /// Ends the item's span; `state` is nil if it is deferred.
  mutating func endTrace(_ slot: Int, of send: SendRequest, as state: StatusRecord.State?) {
    let topic = partitions.offsets.partition(of: items[slot].origin)?.topic ?? topics.sends
    effects.spans += traces.end(
      slot, of: send, as: state?.rawValue ?? "deferred", topic: topic, at: now.wall, using: &generator)
  }

  /// Writes an item's remaining work to a retry topic.
  mutating func produce(_ retry: RetryRecord, for slot: Int) {
    let topic = topics.retry(for: retry.notBefore - now.wall)
    let key = retry.send.audience.recordKey(of: retry.send.id, hub: retry.send.hub)
    effects.productions.append(
      Production(kind: .retry(retry), ticket: items.ticket(slot)),
      ProducerRecord(topic: topic.name, key: key, event: retry.encoded(at: now.wall)))
  }

  /// Writes the status of a send into the partition with its record's number.
  /// Sends arrive in runs of one partition: their statuses, kept together, fill few batches instead of one for each
  /// partition of the topic.
  private mutating func produceStatus(_ status: StatusRecord, for slot: Int) {
    let partition = partitions.offsets.partition(of: items[slot].origin)?.partition
    produce(status, of: .status, partition: partition, for: slot)
  }

  mutating func produce(_ status: StatusRecord, of kind: Production.Kind, partition: Int32? = nil, for slot: Int) {
    var key: [UInt8] = []
    key.reserveCapacity(36)
    status.send.append(to: &key)
    effects.productions.append(
      Production(kind: kind, ticket: items.ticket(slot)),
      ProducerRecord(topic: topics.status, partition: partition, key: key, event: status.encoded()))
  }

  /// Handles Kafka's answer.
  /// An item whose records are all durable settles its offsets; refused records are produced again until they are
  /// durable.
  mutating func acknowledge(_ acknowledgement: Acknowledgement) {
    var errors = acknowledgement.refused[...]
    for index in acknowledgement.productions.indices {
      let error = errors.first?.index == index ? errors.removeFirst().error : nil
      let ticket = acknowledgement.productions.ticket(at: index)
      let slot = ticket.slot
      guard items.isCurrent(ticket), items[slot].phase == .settling else { continue }
      if let error {
        let (production, record) = acknowledgement.productions[index]
        produceAgain(production, record, after: error)
        continue
      }
      refusals.accepted()
      guard items[slot].acknowledge() else { continue }
      switch items[slot].kind {
      case .send, .readmitted: conclude(slot)
      case .plan, .segment, .page: tellStore(slot)
      }
    }
  }

  /// Settles the offsets of an item that is done.
  mutating func conclude(_ slot: Int) {
    partitions.settle(items[slot].origin)
    for follower in items[slot].source.followers { partitions.settle(follower) }
    release(slot)
    items.conclude(slot)
  }

  /// Frees the item's slot without settling it.
  mutating func vacate(_ slot: Int) {
    release(slot)
    items.vacate(slot)
  }

  /// Removes the item from the other components.
  private mutating func release(_ slot: Int) {
    if items[slot].isTraced { traces.forget(slot) }
    switch items[slot].kind {
    case .send: break
    case .plan, .segment, .page, .readmitted: broadcasts.release(slot)
    }
  }

  /// Produces a refused record again. One that is too large is replaced by a smaller one.
  private mutating func produceAgain(_ production: Production, _ record: ProducerRecord, after error: RDKafkaError) {
    if case .segment = production.kind, error.code.condemnsRecord,
      deadLetterSegment(production, record, after: error)
    {
      return
    }
    if error.code == .messageTooLarge {
      switch production.kind {
      case .deadLetter(let letter):
        // The origin still leads to the value while the topic keeps it; endless repetition would stop the partition.
        let shortened = DeadLetter(
          reason: letter.reason, detail: "\(letter.detail) (value of \(letter.value.count) bytes left out)",
          origin: letter.origin, at: letter.at, key: nil, value: [], valueSize: letter.valueSize)
        effects.productions.append(
          Production(kind: .shortenedDeadLetter, ticket: production.ticket),
          ProducerRecord(topic: record.topic, key: nil, event: shortened.encoded()))
        return
      case .retry(let retry):
        effects.alarm(.productionRefused(topic: record.topic, reason: "\(error.code)"))
        let status = StatusRecord(
          of: retry.send, as: .settled, retry.statusPart, devices: retry.devices.map(\.whenTooLarge), at: now.wall,
          times: retry.times)
        return produceStatus(status, for: production.ticket.slot)
      case .status, .page:
        if let shortened = Self.shortened(record) {
          effects.productions.append(Production(kind: production.kind, ticket: production.ticket), shortened)
          return
        }
      case .segment, .shortenedDeadLetter: break
      }
    }
    if !error.isRetriable {
      refusals.note("\(record.topic): \(error.code)")
      effects.alarm(.productionRefused(topic: record.topic, reason: "\(error.code)"))
    }
    refusals.keep(production, record, at: now.uptime)
  }

  /// Dead-letters a segment that its topic will never take. Its pages are pushed after a redrive.
  ///
  /// Its origin is the send's record, because it has no place of its own. Returns false if that record is lost.
  private mutating func deadLetterSegment(
    _ production: Production, _ record: ProducerRecord, after error: RDKafkaError
  ) -> Bool {
    let origin = items[production.ticket.slot].origin
    guard let partition = partitions.offsets.partition(of: origin), let offset = partitions.offsets.offset(of: origin)
    else { return false }
    let letter = DeadLetter(
      reason: .tooLarge, detail: "\(record.topic) refuses the segment for good: \(error.code)",
      origin: DeadLetter.Origin(topic: partition.topic, partition: partition.partition, offset: offset), at: now.wall,
      key: record.key, value: record.value)
    effects.productions.append(
      Production(kind: .deadLetter(letter), ticket: production.ticket),
      ProducerRecord(topic: topics.deadLetter, key: letter.key, event: letter.encoded()))
    effects.tallies.deadLetters.append(letter.reason)
    effects.alarm(.deadLettered(letter.origin, reason: letter.reason, detail: letter.detail))
    return true
  }

  /// A status record that only counts its devices, for one that lists too many; nil if it lists
  /// none.
  private static func shortened(_ record: ProducerRecord) -> ProducerRecord? {
    do {
      guard let status = try StatusRecord.decode(record.value[...]).shortened else { return nil }
      var shortened = record
      shortened.value = status.encoded()
      return shortened
    } catch {
      // This worker wrote it a moment ago. If it is unreadable nevertheless, it is refused like any other record.
      return nil
    }
  }
}
