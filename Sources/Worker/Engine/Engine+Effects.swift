import FanfareCore
import Logging
import RDKafka

extension Engine {
  /// Performs what a turn has led to: one call per sender, one to the producer, one to the consumer.
  mutating func perform(_ effects: consuming Effects, in group: inout DiscardingTaskGroup) {
    submit(effects.submissions)
    let broadcasts = effects.productions.takeBroadcasts()
    produce(effects.productions, by: sink)
    produce(broadcasts, by: broadcastSink)
    for question in effects.questions { ask(question, in: &group) }
    if let lookUp = effects.lookUp { ask(lookUp, in: &group) }
    if !effects.drops.isEmpty { drop(effects.drops, in: &group) }
    if !effects.commit.isEmpty { commit(effects.commit, in: &group) }
    for question in effects.resumptions { ask(question, in: &group) }
    for rebalance in effects.completions { rebalance.complete() }
    if effects.isToLeave { leave(in: &group) }
    if let isHoldingBack = effects.holdsBackSegments { source.setPaused(isHoldingBack) }
    if effects.credit != 0 { source.grant(records: effects.credit) }
    metrics.count(effects.tallies)
    for alarm in effects.alarms { log(alarm) }
    if effects.suppressedAlarms > 0 {
      logger.error(
        "Further alarms of the same moment are left out", metadata: [LogKeys.count: "\(effects.suppressedAlarms)"])
    }
  }

  /// What is shown and looked at from time to time only.
  mutating func report(at now: Moment) {
    metrics.show(state)
    if now.uptime >= lagDue {
      lagDue = now.uptime + 1000
      metrics.show(lag: source.lag(), ledger: &state.ledger, at: now.wall)
    }
    let complaints = state.complaints
    if complaints != self.complaints {
      self.complaints = complaints
      complain(complaints)
    }
  }

  private func submit(_ submissions: [[Push]]) {
    for (number, pushes) in submissions.enumerated() where !pushes.isEmpty {
      guard let sender = table.senders[number] else { continue }
      let mailbox = mailbox
      sender.submit(pushes) { results in
        mailbox.post { $0.pushed.append(Mail.Pushed(sender: number, results: results)) }
      }
    }
  }

  private func ask(_ question: BroadcastQuestion, in group: inout DiscardingTaskGroup) {
    let (registry, broadcasts, mailbox, configuration, now) = (
      registry, broadcasts, mailbox, configuration, clock.now()
    )
    group.addTask {
      var outcome: BroadcastAnswer.Outcome?
      var failure: String?
      do {
        outcome = try await question.ask(registry, broadcasts, limits: configuration, at: now)
      } catch {
        failure = "\(error)"
      }
      let answered = Mail.Answered(answer: BroadcastAnswer(question: question, outcome: outcome), failure: failure)
      mailbox.post { $0.answered.append(answered) }
    }
  }

  private func produce(_ productions: Productions, by sink: any RecordSink) {
    guard !productions.isEmpty else { return }
    let mailbox = mailbox
    sink.submit(productions.records) { results in
      // A record without a result must not count as durable.
      precondition(
        results.count == productions.count, "the sink gave \(results.count) results for \(productions.count) records")
      var refused: [(index: Int, error: RDKafkaError)] = []
      for (index, result) in results.enumerated() {
        if case .failure(let error) = result { refused.append((index, error)) }
      }
      let acknowledgement = Acknowledgement(productions: productions, refused: refused)
      mailbox.post { $0.acknowledged.append(acknowledgement) }
    }
  }

  private func ask(_ lookUp: LookUp, in group: inout DiscardingTaskGroup) {
    let (registry, mailbox) = (registry, mailbox)
    group.addTask {
      let start = ContinuousClock.now
      var targets: [[Target]]?
      var failure: String?
      do {
        let answer = try await registry.resolve(lookUp.queries)
        // An answer that does not fit the question must not be taken for devices of somebody else's send.
        if answer.count == lookUp.queries.count {
          targets = answer
        } else {
          failure = "\(answer.count) answers to \(lookUp.queries.count) queries"
        }
      } catch {
        failure = "\(error)"
      }
      let lookedUp = Mail.LookedUp(
        answer: LookUpAnswer(lookUp: lookUp, targets: targets), duration: ContinuousClock.now - start, failure: failure)
      mailbox.post { $0.lookedUp.append(lookedUp) }
    }
  }

  private func drop(_ drops: [Effects.Drop], in group: inout DiscardingTaskGroup) {
    let (registry, mailbox, now) = (registry, mailbox, clock.now())
    group.addTask {
      var dropped: [RegistrationID]?
      do {
        dropped = try await registry.drop(drops.map(\.device), at: now)
      } catch {
        // Said by the engine, which sees that nothing came; each device will be called dead again with its next push.
        dropped = nil
      }
      let end = Mail.Dropped(requested: drops, dropped: dropped)
      mailbox.post { $0.dropped.append(end) }
    }
  }

  private func commit(_ offsets: [PartitionOffset], in group: inout DiscardingTaskGroup) {
    let (source, mailbox) = (source, mailbox)
    group.addTask {
      var failure: RDKafkaError?
      do throws(RDKafkaError) { try await source.commit(offsets) } catch { failure = error }
      let end = Mail.Committed(offsets: offsets, error: failure)
      mailbox.post { $0.committed.append(end) }
    }
  }

  private func ask(_ question: Effects.Question, in group: inout DiscardingTaskGroup) {
    let (source, mailbox, logger) = (source, mailbox, logger)
    group.addTask {
      var committed: [PartitionOffset]?
      var kept: [PartitionOffset] = []
      do throws(RDKafkaError) {
        committed = try await source.committed(question.partitions)
        kept = try await source.kept(question.partitions)
      } catch {
        logger.warning(
          "The group cannot be asked what is settled; some of it may be done again",
          metadata: [LogKeys.partitions: "\(question.partitions.map(\.description))", LogKeys.error: "\(error)"])
      }
      let answer = Mail.Resumed(number: question.number, committed: committed, kept: kept)
      mailbox.post { $0.resumed.append(answer) }
    }
  }

  private func leave(in group: inout DiscardingTaskGroup) {
    if state.ledger.hasChanges {
      logger.warning(
        "The last positions could not be committed",
        metadata: [LogKeys.error: "\(state.commits.failure.map { "\($0)" } ?? "no time is left")"])
    }
    let source = source
    group.addTask { await source.close() }
  }

  private func log(_ alarm: Alarm) {
    switch alarm {
    case .senderStopped(let sender, let reason):
      logger.error(
        "A push service refuses the configuration; its pushes are kept", metadata: place(of: sender, reason: reason))
    case .serviceUnavailable(let sender, let reason):
      logger.error(
        "A push service is unavailable and left alone for a while; its pushes are kept",
        metadata: place(of: sender, reason: reason))
    case .senderResumed(let sender):
      logger.notice("A push service works again", metadata: place(of: sender))
    case .malformed(let send, let sender, let reason):
      var metadata = place(of: sender, reason: reason)
      metadata[LogKeys.send] = "\(send)"
      logger.error("A push service called a request malformed", metadata: metadata)
    case .dropsSuspended(let sender):
      logger.error("Too many devices look dead at once; none is dropped until fewer do", metadata: place(of: sender))
    case .dropsResumed(let sender):
      logger.notice("Dead devices are dropped again", metadata: place(of: sender))
    case .deadLettered(let origin, let reason, let detail):
      logger.error(
        "A record was set aside",
        metadata: [
          LogKeys.topic: "\(origin.topic)", LogKeys.partition: "\(origin.partition)",
          LogKeys.offset: "\(origin.offset)",
          LogKeys.reason: "\(reason.rawValue)", LogKeys.detail: "\(detail)",
        ])
    case .broadcastPaused(let broadcast, let failed, let all):
      logger.error(
        "A broadcast is paused because too much of it fails",
        metadata: [
          LogKeys.send: "\(broadcast.send)", LogKeys.hub: "\(broadcast.hub)", LogKeys.count: "\(failed)/\(all)",
        ])
    case .productionRefused(let topic, let reason):
      logger.error(
        "A record that must be written is refused", metadata: [LogKeys.topic: "\(topic)", LogKeys.reason: "\(reason)"])
    case .positionsLeft(let partitions, let reason):
      logger.warning(
        "Partitions are given back without their last positions; some of their work may be done again",
        metadata: [LogKeys.partitions: "\(partitions.map(\.description))", LogKeys.reason: "\(reason)"])
    case .workLeft(let partitions, let sends):
      logger.warning(
        "Partitions are given back before their work has settled; it is done again",
        metadata: [LogKeys.partitions: "\(partitions.map(\.description))", LogKeys.count: "\(sends)"])
    case .resumptionTimedOut(let partitions):
      logger.warning(
        "The group did not say in time what is settled; some of it may be done again",
        metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
    }
  }

  private func place(of sender: Int, reason: String? = nil) -> Logger.Metadata {
    var metadata: Logger.Metadata = [
      LogKeys.hub: "\(table.hub(ofSender: sender))", LogKeys.platform: "\(table.platform(ofSender: sender))",
    ]
    if let reason { metadata[LogKeys.reason] = "\(reason)" }
    return metadata
  }
}
