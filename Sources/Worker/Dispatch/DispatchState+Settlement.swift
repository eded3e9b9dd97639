import FanfareCore
import RDKafka

extension DispatchState {
  /// The item has its end: writes its status record, and frees all that is not needed until Kafka has acknowledged it.
  mutating func settle(_ slot: Int, as state: StatusRecord.State, at now: Moment, into effects: inout Effects) {
    guard let send = items[slot].send else { return }
    let resumed = items[slot].resumed
    let all = items[slot].devices
    let limit = resumed == nil ? configuration.devicesPerStatus : Int.max
    let pieces = StatusParts(devices: all.count, limit: limit)
    let parts = resumed?.parts ?? pieces.count
    // Whoever repeats this after a crash may find other devices and need other parts: an id of its own keeps the two
    // from being mixed.
    let attempt = resumed == nil && parts > 1 ? AttemptID.random(using: &generator) : resumed?.attempt
    var isPutOff = false
    var held: RetryRecord?
    for number in 0..<pieces.count {
      let devices = all[pieces[number]]
      let part = resumed?.part ?? number
      if devices.contains(where: { $0.phase == .putOff }) {
        isPutOff = true
        let retry = retryRecord(
          of: devices, counts: resumed?.counts ?? OutcomeCounts(), send: send, part: part, parts: parts,
          attempt: attempt,
          deferrals: (resumed?.deferrals ?? 0) + 1, cameEarly: resumed?.cameEarly ?? false, at: now)
        if topics.retries.isEmpty { held = retry } else { produce(retry, for: slot, at: now, into: &effects) }
      } else {
        produce(
          devices.map { $0.result }, counts: resumed?.counts ?? OutcomeCounts(), of: send, as: state, part: part,
          of: parts,
          attempt,
          for: slot, at: now, into: &effects)
      }
    }
    devices -= all.count
    items[slot].devices = []
    items[slot].renderings = []
    items[slot].send = nil
    items[slot].phase = .settling
    items[slot].unacknowledged = pieces.count
    // Of a send in several parts only the first writing counts, or it would count once for each part that was put off.
    if !isPutOff, resumed == nil || parts == 1 {
      effects.tallies.settled.append(Tallies.Settled(hub: items[slot].hub, state: state))
    }
    advanceLane(slot)
    if let held { hold(held, in: slot, at: now) }
  }

  func produce(_ retry: RetryRecord, for slot: Int, at now: Moment, into effects: inout Effects) {
    guard let topic = topics.retry(for: retry.notBefore - now.wall) else { return }
    let key = retry.send.audience.recordKey(of: retry.send.id, hub: retry.send.hub)
    effects.productions.append(
      Production(kind: .retry(retry), ticket: ticket(slot)),
      ProducerRecord(topic: topic.name, key: key, event: retry.encoded(at: now.wall)))
  }

  private func produce(
    _ results: [DeviceResult], counts: OutcomeCounts, of send: SendRequest, as state: StatusRecord.State, part: Int = 0,
    of parts: Int = 1,
    _ attempt: AttemptID? = nil, for slot: Int, at now: Moment, into effects: inout Effects
  ) {
    let status = StatusRecord(
      send: send.id, hub: send.hub, part: part, parts: parts, attempt: attempt, state: state, sender: send.sender,
      audience: send.audience, acceptedAt: send.acceptedAt, settledAt: now.wall, devices: results, counts: counts,
      traceparent: send.traceparent)
    var key: [UInt8] = []
    key.reserveCapacity(36)
    send.id.append(to: &key)
    effects.productions.append(
      Production(kind: .status, ticket: ticket(slot)),
      // Sends come in runs of one partition: kept together, what becomes of them fills few batches instead of one of
      // each of the topic's partitions.
      ProducerRecord(
        topic: topics.status, partition: ledger.partition(of: items[slot].origin)?.partition, key: key,
        event: status.encoded()))
  }

  /// Kafka has answered. An item all of whose records are durable settles its offsets; what was refused is produced
  /// again until it is durable.
  mutating func acknowledge(_ acknowledgement: Acknowledgement, at now: Moment, into effects: inout Effects) {
    var errors = acknowledgement.refused[...]
    for index in acknowledgement.productions.indices {
      let error = errors.first?.index == index ? errors.removeFirst().error : nil
      let ticket = acknowledgement.productions.ticket(at: index)
      let slot = ticket.slot
      guard isCurrent(ticket), items[slot].phase == .settling else { continue }
      if let error {
        let (production, record) = acknowledgement.productions[index]
        reproduce(production, record, after: error, at: now, into: &effects)
        continue
      }
      if refusal != nil { refusal = nil }
      items[slot].unacknowledged -= 1
      guard items[slot].unacknowledged == 0 else { continue }
      switch items[slot].role {
      case .send, .returned: conclude(slot)
      case .plan(let broadcast): effects.questions.append(.announce(self.ticket(slot), broadcast))
      case .segment(let walk): effects.questions.append(.finish(self.ticket(slot), walk.broadcast, walk.rest))
      case .page(let page): effects.questions.append(.finish(self.ticket(slot), page.broadcast, [page.number]))
      }
    }
  }

  /// A status record that only counts its devices, for one that is too large because it lists so many; nil where it is
  /// no such record.
  private func shortened(_ production: Production, _ record: ProducerRecord) -> ProducerRecord? {
    switch production.kind {
    case .status, .page: break
    case .segment, .retry, .deadLetter, .shortenedDeadLetter: return nil
    }
    let status: StatusRecord
    do {
      status = try StatusRecord.decode(record.value[...])
    } catch {
      // Written here a moment ago; should it not be readable, it is refused as any other.
      return nil
    }
    guard !status.devices.isEmpty else { return nil }
    var counts = status.counts
    counts.add(OutcomeCounts(status.devices))
    let short = StatusRecord(
      send: status.send, hub: status.hub, part: status.part, parts: status.parts, attempt: status.attempt,
      state: status.state,
      sender: status.sender, audience: status.audience, acceptedAt: status.acceptedAt, settledAt: status.settledAt,
      devices: [],
      counts: counts, traceparent: status.traceparent)
    var shortened = record
    shortened.value = short.encoded()
    return shortened
  }

  private mutating func reproduce(
    _ production: Production, _ record: ProducerRecord, after error: RDKafkaError, at now: Moment,
    into effects: inout Effects
  ) {
    var production = production
    if error.code == .messageTooLarge, case .deadLetter(let letter) = production.kind {
      // Its origin still leads to the value for as long as the topic keeps it; an endless repetition would stop the
      // partition.
      let shortened = DeadLetter(
        reason: letter.reason, detail: "\(letter.detail) (value of \(letter.value.count) bytes left out)",
        origin: letter.origin,
        at: letter.at, key: nil, value: [], valueSize: letter.valueSize)
      effects.productions.append(
        Production(kind: .shortenedDeadLetter, ticket: production.ticket),
        ProducerRecord(topic: record.topic, key: nil, event: shortened.encoded()))
      return
    }
    if error.code == .messageTooLarge, case .retry(let retry) = production.kind {
      effects.alarm(.productionRefused(topic: record.topic, reason: "\(error.code)"))
      let results = retry.devices.map { device -> DeviceResult in
        switch device {
        case .done(let result): result
        case .waiting(let device):
          DeviceResult(
            registration: device.registration, platform: device.platform,
            outcome: device.wasUnanswered ? .unconfirmed : .failed,
            reason: device.reason.isEmpty ? "TooLargeToWait" : device.reason, status: device.status,
            attempts: device.attempts)
        }
      }
      produce(
        results, counts: retry.counts, of: retry.send, as: .settled, part: retry.part, of: retry.parts, retry.attempt,
        for: production.ticket.slot,
        at: now, into: &effects)
      return
    }
    if error.code == .messageTooLarge, let status = shortened(production, record) {
      effects.productions.append(Production(kind: production.kind, ticket: production.ticket), status)
      return
    }
    if !error.isRetriable {
      refusal = "\(record.topic): \(error.code)"
      effects.alarm(.productionRefused(topic: record.topic, reason: "\(error.code)"))
    }
    production.refusals += 1
    refused.insert((production, record), due: now.uptime + min(5000, 50 << Int64(min(production.refusals, 7))))
  }
}
