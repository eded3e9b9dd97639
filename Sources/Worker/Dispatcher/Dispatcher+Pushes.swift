import FanfareCore

/// Hands pushes from a platform's queue to its service, and handles the answers.
extension Dispatcher {
  /// Hands pushes over as far as there is room.
  mutating func handOver() {
    guard !lanes.isEmpty else { return }
    lanes.beginRound()
    for turn in lanes.indices {
      let sender = lanes.lane(at: turn)
      while lanes.pushes < configuration.limits.maximumPushes,
        let ticket = lanes[sender].next(
          most: configuration.limits.maximumPushesPerSender, lastSingle: lanes.lastSingle, at: now)
      {
        guard items.phase(of: ticket) == .queued else { continue }
        if !lanes[sender].order.isEmpty, waitsItsTurn(ticket) { continue }
        lanes[sender].beginAttempt(ticket, at: now.uptime)
        submit(ticket)
        endProbe(ticket, of: sender)
        spendQuota(of: sender, for: ticket)
      }
      if let request = lanes[sender].requestQuota(at: now) {
        effects.questions.append(.quota(sender: sender, request.pushes, request.quota, lead: request.lead))
      }
    }
  }

  /// Begins with devices of an item that is dispatching. With a `delay`, all that are open are deferred for it.
  /// All of them are open before the first one can be closed: the last one that closes may settle the item.
  mutating func begin(_ indices: Range<Int>, of slot: Int, deferredFor delay: Duration? = nil) {
    for index in indices {
      let (sender, due) = (items[slot].devices[index].sender, items[slot].devices[index].due)
      switch items[slot].devices[index].phase {
      case .done: closeDevice(slot)
      case .queued where sender < 0, .resting where sender < 0: deferUnserved(slot, index)
      case let phase where phase == .deferred || delay != nil:
        deferDevice(slot, index, for: max(delay ?? .zero, .milliseconds(due - now.uptime)))
      case .resting: lanes[sender].rest(items.ticket(slot, device: index), until: due)
      default:
        // Not with the next sweep: the records of a stopped service would take one another's turns.
        if items[slot].kind == .readmitted, !lanes[sender].mayPush(at: now), let delay = outageDelay(of: slot, index) {
          deferDevice(slot, index, for: delay)
        } else {
          enqueue(slot, index)
        }
      }
    }
  }

  /// Queues a device for its platform.
  mutating func enqueue(_ slot: Int, _ index: Int) {
    let sender = items[slot].devices[index].sender
    lanes[sender].enqueue(items.ticket(slot, device: index))
    if lanes[sender].isUnresponsive { passFirstAttempt(slot, index) }
  }

  /// Hands one queued push over, unless it has expired, its device must be looked up again, or it
  /// cannot be rendered.
  mutating func submit(_ ticket: Ticket) {
    let (slot, index) = (ticket.slot, ticket.device)
    guard items.phase(of: ticket) != nil, let send = items[slot].send else { return }
    let expiresAt = items[slot].expiresAt
    guard now.wall < expiresAt else { return expire(slot, index) }
    let sender = items[slot].devices[index].sender
    let (attempts, checkedAt) = (items[slot].devices[index].history.attempts, items[slot].devices[index].checkedAt)
    if needsRecheck(send, checkedAt: checkedAt, attempts: attempts) {
      items[slot][device: index].beginRecheck()
      lanes.beginCheck(ticket, of: sender)
      lookUps.appendRecheck(ticket)
      return
    }
    let rendered: RenderedPush
    let variant = items[slot].devices[index].target.variant
    let rendering: WorkItem.Rendering
    if let known = items[slot].renderings.first(where: { $0.sender == sender && $0.variant === variant }) {
      rendering = known
    } else {
      guard let service = table.senders[sender] else { return }
      rendering = WorkItem.Rendering(
        sender: sender, variant: variant,
        result: Result { () throws(PushOutcome) in
          try service.render(send.rendered(from: variant, for: service.platform))
        })
      items[slot].keep(rendering)
    }
    switch rendering.result {
    case .success(let push): rendered = push
    case .failure(let outcome): return judge(ticket, outcome)
    }
    // A broadcast counts as dispatched when it is planned, not once for each page.
    if items[slot].submit(index, at: now), !items[slot].isPage {
      effects.tallies.dispatched.append(items[slot].hub)
    }
    if items[slot].isTraced { traces.pushed(slot, on: table.platform(ofSender: sender), at: now.wall) }
    lanes.submitted(ticket, to: sender, at: now.uptime)
    if lanes[sender].silence.isNoticed { passFirstAttempt(slot, index) }
    effects.submissions[sender].append(
      Push(
        ticket: ticket.rawValue,
        id: PushID(send: send.id, registration: items[slot].devices[index].target.registration),
        handle: items[slot].devices[index].target.handle, rendering: rendered, expiresAt: expiresAt,
        isBroadcast: ticket.isBroadcast))
  }

  /// Counts a push that is on its way to the service against the quota.
  /// A push that is being looked up does not count yet: the look-up may outlast the reservation.
  mutating func spendQuota(of sender: Int, for ticket: Ticket) {
    if items.phase(of: ticket) == .inFlight { lanes[sender].spendQuota() }
  }

  /// Lets another push be the probe if this one was the probe and will not be answered.
  mutating func endProbe(_ ticket: Ticket, of sender: Int) {
    guard lanes[sender].probe == ticket else { return }
    switch items.phase(of: ticket) {
    case .inFlight, .checking: break
    case .queued, .resting, .done, .deferred, .withdrawn, nil: lanes[sender].withdrawProbe()
    }
  }

  /// Handles a push service's answers.
  mutating func receive(_ results: [PushResult], from sender: Int) {
    for result in results {
      let ticket = Ticket(rawValue: result.ticket)
      lanes.answered(ticket, by: sender, result.outcome, at: now.uptime)
      // Items that were given up get no result; their pushes still tell about the service.
      let isJudged = items.phase(of: ticket) == .inFlight
      if let change = lanes[sender].learn(from: result.outcome, about: ticket, at: now.uptime) {
        changed(sender, change, reason: result.outcome.reason)
      }
      guard isJudged else {
        endProbe(ticket, of: sender)
        continue
      }
      if result.outcome.status != 0 { items[ticket.slot].answered(ticket.device, at: now) }
      judgeDevice(result.outcome, from: sender, about: ticket)
      judge(ticket, result.outcome)
    }
  }

  /// Follows the retry policy's decision on an outcome of the service, or of rendering.
  private mutating func judge(_ ticket: Ticket, _ outcome: PushOutcome) {
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = items[slot].devices[index].sender
    var history = items[slot].devices[index].history
    let firstAttemptAt = items[slot].devices[index].firstAttemptAt
    if history.attempts > 0, firstAttemptAt != DeviceProgress.never {
      history.age = .milliseconds(now.uptime - firstAttemptAt)
    }
    if outcome.verdict == .unknown { history.wasUnanswered = true }
    // The sender's new credential is tried first.
    let isRefusal =
      outcome.scope == .credential && (outcome.verdict == .configurationError || history.hasReauthenticated)
    // It was held before, and the credential has lately worked for another push.
    if isRefusal, history.heldAttempts > 0, lanes[sender].trust.isProved(at: now.uptime) {
      history.contradictions += 1
    }
    let isAlone = isRefusal && lanes[sender].refuse(items[slot].devices[index].target.registration, at: now.uptime)
    if isAlone, lanes[sender].isRefusalReportDue(at: now.uptime) {
      effects.alarm(.deviceRefused(sender: sender, reason: outcome.reason))
    }
    // During an outage attempts do not count: the probe is any push, the one that has waited longest.
    if outcome.isOutage, lanes[sender].breaker.isOut { history = history.held }
    let decision = configuration.retry.decide(
      outcome, on: items[slot].devices[index].target.platform, history: history,
      remaining: items[slot].expiresAt - now.wall, jitter: Double.random(in: 0..<1, using: &generator),
      isAlone: isAlone)
    if let observe { observe(.outcome(outcome.verdict, decision.action)) }
    if outcome.verdict == .malformed, let send = items[slot].send {
      effects.alarm(.malformed(send: send.id, sender: sender, reason: outcome.reason))
    }
    guard case .finish(let end) = decision else {
      items[slot][device: index].refused(reason: outcome.reason, status: outcome.status)
      effects.tallies.retries.append(Tallies.Retry(sender: sender, reason: outcome.reason))
      if isAlone {
        history = history.refusedAlone
        // If the credential is refused everywhere later, the push is held with the others.
        history.contradictions = min(history.contradictions, configuration.retry.maximumContradictions - 1)
      }
      return repeatLater(ticket, decision, outcome, history)
    }
    items[slot][device: index].tried(history)
    // Refused for the configuration and not held: the push itself is at fault, and the answer says nothing about the
    // service.
    if outcome.verdict == .configurationError { lanes[sender].ignoreProbe() }
    finish(slot, index, as: end, reason: outcome.reason, status: outcome.status)
  }

  private mutating func repeatLater(
    _ ticket: Ticket, _ decision: RetryPolicy.Decision, _ outcome: PushOutcome, _ history: RetryPolicy.History
  ) {
    let (slot, index) = (ticket.slot, ticket.device)
    let sender = items[slot].devices[index].sender
    // A push of a paused page is queued when the page continues, or deferred with the rest of it.
    let isPaused = items[slot].isPage && broadcasts.isPaused(slot)
    var history = history
    // Not at the policy's time, but with all others that wait for the service, behind the older ones.
    if outcome.isOutage, lanes[sender].breaker.isOut, let delay = outageDelay(of: slot, index) {
      history.waits += 1
      items[slot][device: index].tried(history)
      return deferInOrder(slot, index, for: delay)
    }
    if case .wait(let delay) = decision { keepOrder(slot, index, during: delay, outcome) }
    switch decision {
    case .finish: break
    case .again:
      if outcome.verdict == .reauthenticate { history.hasReauthenticated = true } else { history.quickRetries += 1 }
      items[slot][device: index].enqueue()
      if !isPaused { lanes[sender].enqueueFirst(ticket) }
    case .wait(let delay) where delay > deferral.longestRest(isBroadcast: items[slot].isBroadcast):
      history.waits += 1
      items[slot][device: index].tried(history)
      return deferDevice(slot, index, for: delay)
    case .wait(let delay):
      history.waits += 1
      rest(ticket, until: now.uptime + delay.milliseconds)
    case .hold:
      history = history.held
      items[slot][device: index].enqueue()
      // Behind all others, so that another push is the next probe, and one bad push cannot keep the service stopped.
      // The order of first attempts, which users are promised, stays that of the queue.
      if !isPaused { lanes[sender].enqueue(ticket) }
      if let change = lanes[sender].stop(at: now.uptime) {
        changed(sender, change, reason: outcome.reason)
      }
    }
    items[slot][device: index].tried(history)
    passFirstAttempt(slot, index)
  }

  /// Lets a push wait in memory until a time.
  mutating func rest(_ ticket: Ticket, until due: Int64) {
    items[ticket.slot][device: ticket.device].rest(until: due)
    lanes[items[ticket.slot].devices[ticket.device].sender].rest(ticket, until: due)
    passFirstAttempt(ticket.slot, ticket.device)
  }

  /// Queues a device whose rest is over, unless it was woken before and has begun another rest since.
  mutating func endRest(_ ticket: Ticket) {
    guard items.phase(of: ticket) == .resting, items[ticket.slot].devices[ticket.device].due <= now.uptime else {
      return
    }
    wake(ticket)
  }

  /// Queues a resting device. A device of a paused page is queued when the page continues.
  mutating func wake(_ ticket: Ticket) {
    guard items.phase(of: ticket) == .resting else { return }
    items[ticket.slot][device: ticket.device].enqueue()
    if items[ticket.slot].isPage, broadcasts.isPaused(ticket.slot) { return }
    lanes[items[ticket.slot].devices[ticket.device].sender].enqueue(ticket)
  }

  /// Handles a change of the lane's circuit breaker.
  private mutating func changed(_ sender: Int, _ change: PlatformLane.Change, reason: String) {
    lanes[sender].reason = reason
    switch change {
    case .recovered:
      effects.alarm(.senderResumed(sender: sender))
      rememberQueue(of: sender)
    case .unavailable:
      effects.alarm(.serviceUnavailable(sender: sender, reason: reason))
      passFirstAttempts(of: sender)
    case .stopped:
      effects.alarm(.senderStopped(sender: sender, reason: reason))
      passFirstAttempts(of: sender)
    }
  }

  /// Pushes that wait for a stopped platform do not delay the same users' sends on other platforms.
  /// Their order on this one is kept by its queue, and by `DeferredOrder` when some of them are deferred.
  private mutating func passFirstAttempts(of sender: Int) {
    for ticket in lanes[sender].queued where items.phase(of: ticket) == .queued {
      passFirstAttempt(ticket.slot, ticket.device)
    }
  }

  /// Stops waiting for silent services long before their pushes expire.
  /// Otherwise every send of a user would wait for the one before on all platforms until then.
  mutating func watchSilence() {
    for sender in lanes.indices {
      let (isNoticed, change) = lanes[sender].watchSilence(
        patience: configuration.circuit.patience, crowd: configuration.limits.maximumRecords / 2, at: now.uptime)
      if isNoticed { passOpenFirstAttempts(of: sender) }
      if let change { changed(sender, change, reason: "Silence") }
    }
  }

  private mutating func passOpenFirstAttempts(of sender: Int) {
    for slot in items.indices where items[slot].phase == .dispatching && items[slot].progress.openFirstAttempts > 0 {
      for index in items[slot].devices.indices where items[slot].devices[index].sender == sender {
        switch items[slot].devices[index].phase {
        case .inFlight, .queued: passFirstAttempt(slot, index)
        case .checking, .resting, .done, .deferred, .withdrawn: break
        }
      }
    }
  }

  /// Ends the pushes that expire in the queues of stopped platforms: no other step looks at them.
  mutating func expireStopped() {
    for sender in lanes.indices where lanes[sender].isStopped {
      for ticket in lanes[sender].takeQueue() where items.phase(of: ticket) == .queued {
        if now.wall < items[ticket.slot].expiresAt {
          lanes[sender].enqueue(ticket)
        } else {
          expire(ticket.slot, ticket.device)
        }
      }
    }
  }

  /// Notes what the answer says about its device.
  /// A device reported dead is held for up to a second before it is unregistered.
  private mutating func judgeDevice(_ outcome: PushOutcome, from sender: Int, about ticket: Ticket) {
    // A handle that the caller named is not a registration: whoever invents handles must not decide about those of
    // others.
    guard let device = items.device(ticket), device.isRegistered else { return }
    let isGone: Bool
    switch outcome.verdict {
    case .deviceGone: isGone = true
    case .accepted, .rejected, .malformed: isGone = false
    case .retryHere, .retryLater, .reauthenticate, .configurationError, .unknown: return
    }
    if lanes[sender].judgeDevice(isGone: isGone) {
      let isSuspended = lanes[sender].unregistering.isSuspended
      effects.alarm(isSuspended ? .unregisteringSuspended(sender: sender) : .unregisteringResumed(sender: sender))
    }
    guard isGone else { return }
    lanes[sender].suspect(
      DeadDevice(
        hub: table.hub(ofSender: sender), registration: device.target.registration, handle: device.target.handle,
        since: outcome.since, reason: outcome.reason))
  }
}
