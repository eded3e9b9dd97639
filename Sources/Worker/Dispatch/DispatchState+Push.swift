import DequeModule
import FanfareCore

extension DispatchState {
  /// Hands pushes to senders as far as there is room. Each turn another sender has first pick, so that none starves
  /// when places are few.
  mutating func pump(at now: Moment, into effects: inout Effects) {
    guard !senders.isEmpty else { return }
    firstSender = (firstSender + 1) % senders.count
    for number in senders.indices {
      let sender = (firstSender + number) % senders.count
      while pushes < configuration.maximumPushes, senders[sender].inFlight < configuration.maximumPushesPerSender,
        senders[sender].gate.allowance(at: now.uptime) > 0,
        senders[sender].quota.allowsPush(besides: senders[sender].checking, at: now.wall),
        let ticket = senders[sender].queue.popFirst(
          mayTakeBulk: senders[sender].queue.hasBulk
            && senders[sender].bulkInFlight < senders[sender].bulkWindow.limit(singleAt: singleAt, at: now.uptime))
      {
        guard phase(of: ticket) == .queued else { continue }
        if !senders[sender].order.isEmpty, waitsItsTurn(ticket, at: now, into: &effects) { continue }
        if senders[sender].gate.state != .closed {
          senders[sender].gate.beginProbe(at: now.uptime)
          senders[sender].probe = ticket
        }
        submit(ticket, at: now, into: &effects)
        endProbe(ticket, of: sender)
        spendQuota(of: sender, for: ticket)
      }
      askForQuota(of: sender, at: now, into: &effects)
    }
  }

  /// Lets another push be the probe if this one was it and is not going to be answered: it expired, or was not fit to
  /// be sent.
  mutating func endProbe(_ ticket: Ticket, of sender: Int) {
    guard senders[sender].probe == ticket else { return }
    switch phase(of: ticket) {
    case .inFlight, .checking: break
    case .queued, .resting, .waiting, .done, .putOff, .withdrawn, nil:
      senders[sender].probe = nil
      senders[sender].gate.withdrawProbe()
    }
  }

  /// Answers have come from a sender.
  mutating func receive(_ results: [PushResult], from sender: Int, at now: Moment, into effects: inout Effects) {
    for result in results {
      let ticket = Ticket(rawValue: result.ticket)
      if ticket.isBulk {
        senders[sender].bulkWindow.ended(
          ticket, isAnswer: result.outcome.verdict == .accepted,
          isMostlyBulk: senders[sender].bulkInFlight > senders[sender].inFlight / 2, at: now.uptime)
      }
      releasePlace(of: sender, for: ticket)
      // Of whom nothing more is expected nothing need be heard: the silence ends with the last push, however that
      // ended.
      if result.outcome.verdict != .unknown || senders[sender].unanswered == 0 { hear(from: sender, at: now) }
      // Items that were given up get no result any more; their pushes only give back their places, and tell about the
      // sender.
      let isOpen = phase(of: ticket) == .inFlight
      let isProbe = senders[sender].probe == ticket
      learn(from: result.outcome, isJudged: isOpen, isProbe: isProbe, of: sender, at: now, into: &effects)
      guard isOpen else { continue }
      noteDevice(result.outcome, from: sender, about: ticket, into: &effects)
      judge(ticket, result.outcome, at: now, into: &effects)
    }
  }

  /// Puts a device into the queue of its sender.
  mutating func enqueue(_ slot: Int, _ index: Int, for sender: Int) {
    senders[sender].queue.append(ticket(slot, device: index))
    if senders[sender].gate.state != .closed || senders[sender].isSilent { passFirstAttempt(slot, index) }
  }

  /// Hands one queued push to its sender, unless it has expired, its device must be looked up again, or there is
  /// nothing that could be sent.
  mutating func submit(_ ticket: Ticket, at now: Moment, into effects: inout Effects) {
    let (slot, index) = (ticket.slot, ticket.device)
    guard phase(of: ticket) != nil, let send = items[slot].send else { return }
    let expiresAt = items[slot].expiresAt
    guard now.wall < expiresAt else {
      let (reason, status) = (items[slot].devices[index].reason, items[slot].devices[index].status)
      return finish(slot, index, as: .expired, reason: reason, status: status, at: now, into: &effects)
    }
    let sender = items[slot].devices[index].sender
    let (attempts, checkedAt) = (items[slot].devices[index].history.attempts, items[slot].devices[index].checkedAt)
    if needsRecheck(send, checkedAt: checkedAt, attempts: attempts, at: now) {
      items[slot].devices[index].phase = .checking
      takePlace(of: sender, for: ticket)
      senders[sender].checking += 1
      toRecheck.append(ticket)
      return
    }
    let rendered: RenderedPush
    if let rendering = items[slot].renderings.first(where: { $0.sender == sender }) {
      rendered = rendering.rendered
    } else {
      guard let service = table.senders[sender] else { return }
      do {
        rendered = try service.render(send)
        items[slot].renderings.append(WorkItem.Rendering(sender: sender, rendered: rendered))
      } catch {
        return judge(ticket, error, at: now, into: &effects)
      }
    }
    if !items[slot].hasStarted {
      items[slot].hasStarted = true
      // A broadcast counts as dispatched when it is planned, not once for each page.
      if !items[slot].isPage { effects.tallies.dispatched.append(items[slot].hub) }
    }
    if attempts == items[slot].devices[index].history.heldAttempts {
      items[slot].devices[index].firstAttemptAt = now.uptime
    }
    items[slot].devices[index].history.attempts = attempts + 1
    items[slot].devices[index].phase = .inFlight
    takePlace(of: sender, for: ticket)
    if ticket.isBulk {
      senders[sender].bulkWindow.submitted(ticket, inFlight: senders[sender].bulkInFlight, at: now.uptime)
    } else {
      singleAt = now.uptime
    }
    if senders[sender].quietSince == nil { senders[sender].quietSince = now.uptime }
    if senders[sender].isSilent { passFirstAttempt(slot, index) }
    effects.submissions[sender].append(
      Push(
        ticket: ticket.rawValue,
        id: PushID(send: send.id, registration: items[slot].devices[index].target.registration),
        handle: items[slot].devices[index].target.handle, rendering: rendered, expiresAt: expiresAt,
        isBulk: ticket.isBulk))
  }

  /// Does what the policy says about an outcome, be it the service's or that of rendering.
  private mutating func judge(_ ticket: Ticket, _ outcome: PushOutcome, at now: Moment, into effects: inout Effects) {
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = items[slot].devices[index].sender
    var history = items[slot].devices[index].history
    if history.attempts > 0 { history.age = .milliseconds(now.uptime - items[slot].devices[index].firstAttemptAt) }
    if outcome.verdict == .unknown { history.wasUnanswered = true }
    if let heldAt = items[slot].devices[index].heldAt, heldAt != senders[sender].gate.recoveries {
      history.contradictions += 1
      items[slot].devices[index].heldAt = nil
    }
    // Attempts during an outage do not count: who tries whether it is over is the one that has waited longest.
    if outcome.isOutage, senders[sender].gate.isOut { history = history.held }
    let decision = configuration.retry.decide(
      outcome, on: items[slot].devices[index].target.platform, history: history,
      remaining: items[slot].expiresAt - now.wall,
      jitter: Double.random(in: 0..<1, using: &generator))
    if outcome.verdict == .malformed, let send = items[slot].send {
      effects.alarm(.malformed(send: send.id, sender: sender, reason: outcome.reason))
    }
    guard case .finish(let end) = decision else {
      items[slot].devices[index].reason = outcome.reason
      items[slot].devices[index].status = outcome.status
      effects.tallies.retries.append(Tallies.Retry(sender: sender, reason: outcome.reason))
      repeatLater(ticket, decision, outcome, history, at: now, into: &effects)
      return
    }
    items[slot].devices[index].history = history
    // Refused for the configuration and not held: the fault is its own, and was no test of the sender.
    if outcome.verdict == .configurationError { senders[sender].gate.withdrawProbe() }
    finish(slot, index, as: end, reason: outcome.reason, status: outcome.status, at: now, into: &effects)
  }

  private mutating func repeatLater(
    _ ticket: Ticket, _ decision: RetryPolicy.Decision, _ outcome: PushOutcome, _ history: RetryPolicy.History,
    at now: Moment,
    into effects: inout Effects
  ) {
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = items[slot].devices[index].sender
    // Where the page was paused meanwhile it gets into its queue when the page goes on, or is put off with what is left
    // of it.
    let isCalledBack = items[slot].page?.isParked == true
    var history = history
    // Not when the policy says, but with all the others that wait for the service, behind those that are older.
    if outcome.isOutage, senders[sender].gate.isOut, let delay = outageDelay(of: slot, index, at: now) {
      history.waits += 1
      items[slot].devices[index].history = history
      return putOff(slot, index, inOrderFor: delay, at: now, into: &effects)
    }
    if case .wait(let delay) = decision { waitInOrder(slot, index, delay, outcome, at: now) }
    switch decision {
    case .finish: break
    case .again:
      if outcome.verdict == .reauthenticate { history.hasReauthenticated = true } else { history.quickRetries += 1 }
      items[slot].devices[index].phase = .queued
      if !isCalledBack { senders[sender].queue.prepend(ticket) }
    case .wait(let delay) where delay > longestRest(of: slot) && !topics.retries.isEmpty:
      history.waits += 1
      items[slot].devices[index].history = history
      return putOff(slot, index, for: delay, at: now, into: &effects)
    case .wait(let delay):
      history.waits += 1
      items[slot].devices[index].phase = .resting
      resting.insert(ticket, due: now.uptime + delay.milliseconds)
    case .hold:
      history = history.held
      items[slot].devices[index].heldAt = senders[sender].gate.recoveries
      items[slot].devices[index].phase = .queued
      // Behind all others, so that another is the next to try and one push that is refused by itself cannot keep the
      // sender stopped. The order of first attempts, which is what a user is promised, is that of the queue without
      // those that had theirs.
      if !isCalledBack { senders[sender].queue.append(ticket) }
      stop(sender, reason: outcome.reason, at: now, into: &effects)
    }
    items[slot].devices[index].history = history
    passFirstAttempt(slot, index)
  }

  /// Lets the sender's gate learn from an answer of the service, whatever has become of the send meanwhile. Whether a
  /// mistake of the configuration stops the sender is for the judgement of the push to say, where there is going to be
  /// one.
  private mutating func learn(
    from outcome: PushOutcome, isJudged: Bool, isProbe: Bool, of sender: Int, at now: Moment,
    into effects: inout Effects
  ) {
    switch outcome.verdict {
    case .accepted, .rejected, .malformed, .deviceGone:
      if senders[sender].gate.succeed() {
        effects.alarm(.senderResumed(sender: sender))
        keepOrder(of: sender, at: now)
      }
    case .retryHere, .retryLater, .unknown:
      // A late answer from before the circuit opened says nothing about the push that tries now.
      if isProbe { senders[sender].gate.remainUnsure(at: now.uptime) }
      if outcome.isOutage, senders[sender].gate.miss(at: now.uptime) {
        effects.alarm(.serviceUnavailable(sender: sender, reason: outcome.reason))
        passFirstAttempts(of: sender)
      }
    case .reauthenticate: if isProbe { senders[sender].gate.remainUnsure(at: now.uptime) }
    case .configurationError:
      if !isJudged { stop(sender, reason: outcome.reason, at: now, into: &effects) }
    }
  }

  /// Stops a sender that cannot work, and says so once.
  private mutating func stop(_ sender: Int, reason: String, at now: Moment, into effects: inout Effects) {
    guard senders[sender].gate.fail(at: now.uptime) else { return }
    effects.alarm(.senderStopped(sender: sender, reason: reason))
    passFirstAttempts(of: sender)
  }

  /// What waits for a stopped sender must not hold up the same users' sends on other platforms. Their order on this one
  /// is kept by its queue, and by `OutageOrder` where some of them are put off.
  private mutating func passFirstAttempts(of sender: Int) {
    for waiting in senders[sender].queue.tickets {
      if phase(of: waiting) == .queued { passFirstAttempt(waiting.slot, waiting.device) }
    }
  }

  /// The device has its result. With the last one the item has its end.
  mutating func finish(
    _ slot: Int, _ index: Int, as outcome: DeviceResult.Outcome, reason: String, status: Int, at now: Moment,
    into effects: inout Effects
  ) {
    forgetOrder(slot, index, at: now)
    items[slot].devices[index].phase = .done
    items[slot].devices[index].outcome = outcome
    items[slot].devices[index].reason = reason
    items[slot].devices[index].status = status
    if let acceptedAt = items[slot].send?.acceptedAt {
      effects.tallies.results.append(
        Tallies.Result(
          sender: SenderTable.place(hub: items[slot].hub, platform: items[slot].devices[index].target.platform),
          outcome: outcome, reason: reason,
          latency: max(0, now.wall.milliseconds - acceptedAt.milliseconds)))
    }
    passFirstAttempt(slot, index)
    closeDevice(slot, at: now, into: &effects)
  }

  /// One device less is open; after the last one the item has its end.
  mutating func closeDevice(_ slot: Int, at now: Moment, into effects: inout Effects) {
    items[slot].openDevices -= 1
    // A page has its end when its last device was looked up, too: see `walkSegments`.
    guard items[slot].openDevices == 0, !items[slot].isPage else { return }
    let wasNeverSent =
      !items[slot].hasStarted && items[slot].resumed?.counts.isEmpty ?? true
      && items[slot].devices.allSatisfy { $0.phase == .done && $0.outcome == .expired && $0.history.attempts == 0 }
    settle(slot, as: wasNeverSent ? .expired : .settled, at: now, into: &effects)
  }

  /// The device's first attempt has its outcome, or cannot be made now; after the last one the next send of the same
  /// key may start.
  mutating func passFirstAttempt(_ slot: Int, _ index: Int) {
    guard !items[slot].devices[index].isFirstAttemptOver else { return }
    items[slot].devices[index].isFirstAttemptOver = true
    items[slot].openFirstAttempts -= 1
    if items[slot].openFirstAttempts == 0 { advanceLane(slot) }
  }

  /// Something was heard of the service, or nothing is to be heard any more.
  private mutating func hear(from sender: Int, at now: Moment) {
    senders[sender].quietSince = senders[sender].unanswered > 0 ? now.uptime : nil
    senders[sender].isSilent = false
  }

  /// Stops waiting for services of which nothing is heard, long before the time of what was sent to them is up: until
  /// then every send of a user would wait for the one before, and with it the user's devices on all other platforms.
  mutating func noticeSilence(at now: Moment, into effects: inout Effects) {
    for sender in senders.indices {
      guard let since = senders[sender].quietSince, senders[sender].unanswered > 0 else { continue }
      let silence = now.uptime - since
      guard silence >= configuration.circuit.patience.milliseconds else { continue }
      if !senders[sender].isSilent {
        senders[sender].isSilent = true
        for slot in items.indices where items[slot].phase == .dispatching && items[slot].openFirstAttempts > 0 {
          for index in items[slot].devices.indices where items[slot].devices[index].sender == sender {
            switch items[slot].devices[index].phase {
            case .inFlight, .queued: passFirstAttempt(slot, index)
            case .checking, .resting, .waiting, .done, .putOff, .withdrawn: break
            }
          }
        }
      }
      let held = senders[sender].unanswered - senders[sender].bulkInFlight + senders[sender].queue.singles
      let isCrowding = held > configuration.maximumRecords / 2
      if senders[sender].gate.endure(
        silence: silence, inFlight: senders[sender].unanswered, isCrowding: isCrowding, at: now.uptime)
      {
        effects.alarm(.serviceUnavailable(sender: sender, reason: "Silence"))
        passFirstAttempts(of: sender)
      }
    }
  }

  /// Gives up what expires in the queues of stopped senders: nothing else would look at it.
  mutating func sweepStoppedSenders(at now: Moment, into effects: inout Effects) {
    for sender in senders.indices where senders[sender].gate.state != .closed {
      for ticket in senders[sender].queue.removeAll() {
        guard let device = device(ticket), device.phase == .queued else { continue }
        if now.wall < items[ticket.slot].expiresAt {
          senders[sender].queue.append(ticket)
        } else {
          finish(
            ticket.slot, ticket.device, as: .expired, reason: device.reason, status: device.status, at: now,
            into: &effects)
        }
      }
    }
  }

  private mutating func takePlace(of sender: Int, for ticket: Ticket) {
    pushes += 1
    senders[sender].inFlight += 1
    if ticket.isBulk { senders[sender].bulkInFlight += 1 }
  }

  /// The longest that a device of the item rests in memory: nobody waits for the end of a single send, but all of a
  /// broadcast waits for its page, and what was put off of other pages for what has come back of one.
  private func longestRest(of slot: Int) -> Duration {
    items[slot].isBulk ? min(configuration.longestRest, .seconds(1)) : configuration.longestRest
  }

  /// A push is answered, or a reserved place is not needed.
  mutating func releasePlace(of sender: Int, for ticket: Ticket) {
    pushes -= 1
    senders[sender].inFlight -= 1
    if ticket.isBulk { senders[sender].bulkInFlight -= 1 }
  }
}
