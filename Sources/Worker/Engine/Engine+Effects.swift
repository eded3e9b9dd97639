import FanfareCore
import Logging
import RDKafka

extension Engine {
  /// Performs the actions of a turn: one call per sender, one to the producer, one to the consumer.
  mutating func perform(_ effects: consuming Effects, in group: inout DiscardingTaskGroup) {
    submit(effects.submissions)
    let broadcasts = effects.productions.takeBroadcasts()
    produce(effects.productions, by: sink)
    produce(broadcasts, by: broadcastSink)
    for question in effects.questions { ask(question, in: &group) }
    if let lookUp = effects.lookUp { ask(lookUp, in: &group) }
    if !effects.unregistrations.isEmpty { unregister(effects.unregistrations, in: &group) }
    if !effects.group.commit.isEmpty { commit(effects.group.commit, in: &group) }
    for question in effects.group.recoveries { ask(question, in: &group) }
    for rebalance in effects.group.completions { rebalance.complete() }
    if effects.group.isToLeave { leave(in: &group) }
    if let isHoldingBack = effects.pausesSegments { source.setPaused(isHoldingBack) }
    if effects.credit != 0 { source.grant(records: effects.credit) }
    if effects.hasNewHubs { metrics.extend(to: table) }
    metrics.count(effects.tallies)
    if !effects.spans.isEmpty { spans?.record(effects.spans) }
    for alarm in effects.alarms.list { log(alarm) }
    if effects.alarms.suppressed > 0 {
      logger.error(
        "Further alarms of the same turn were suppressed", metadata: [LogKeys.count: "\(effects.alarms.suppressed)"])
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
        outcome = try await question.ask(registry, broadcasts, limits: configuration.broadcasts, at: now)
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
    let (registry, mailbox, limit) = (registry, mailbox, configuration.limits.lookUpDevices)
    group.addTask {
      let start = ContinuousClock.now
      var found: [AudiencePage]?
      var failure: String?
      do {
        let answer = try await registry.resolve(lookUp.queries, limit: limit)
        // An answer that does not fit the request must not be mistaken for devices of another send.
        if answer.count == lookUp.queries.count {
          found = answer
        } else {
          failure = "\(answer.count) answers to \(lookUp.queries.count) queries"
        }
      } catch {
        failure = "\(error)"
      }
      let lookedUp = Mail.LookedUp(
        answer: LookUpAnswer(lookUp: lookUp, found: found), duration: ContinuousClock.now - start, failure: failure)
      mailbox.post { $0.lookedUp.append(lookedUp) }
    }
  }

  private func unregister(_ requested: [Effects.Unregistration], in group: inout DiscardingTaskGroup) {
    let (registry, mailbox, now) = (registry, mailbox, clock.now())
    group.addTask {
      var devices: [RegistrationID]?
      do {
        devices = try await registry.drop(requested.map(\.device), at: now)
      } catch {
        // The engine logs the missing answer. Each device will be reported dead again with its next push.
        devices = nil
      }
      let end = Mail.Unregistered(requested: requested, devices: devices)
      mailbox.post { $0.unregistered.append(end) }
    }
  }

  private func commit(_ offsets: [PartitionOffset], in group: inout DiscardingTaskGroup) {
    let (source, mailbox) = (source, mailbox)
    group.addTask {
      let end = await source.end(ofCommit: offsets)
      mailbox.post { $0.committed.append(end) }
    }
  }

  private func ask(_ question: OffsetQuestion, in group: inout DiscardingTaskGroup) {
    let (source, mailbox, logger) = (source, mailbox, logger)
    group.addTask {
      let answer = await question.ask(source, logger: logger)
      mailbox.post { $0.recovered.append(answer) }
    }
  }

  private func leave(in group: inout DiscardingTaskGroup) {
    if dispatcher.partitions.offsets.hasChanges {
      let failure = dispatcher.partitions.commits.failure.map { "\($0)" } ?? "no time is left"
      logger.warning("The last positions could not be committed", metadata: [LogKeys.error: "\(failure)"])
    }
    let source = source
    group.addTask { await source.close() }
  }

  private func log(_ alarm: Alarm) {
    switch alarm {
    case .senderStopped(let sender, let reason):
      logger.error(
        "Push service refuses the configuration; its circuit is open and its pushes are kept",
        metadata: place(of: sender, reason: reason))
    case .serviceUnavailable(let sender, let reason):
      logger.error(
        "Push service is unavailable; its circuit is open and its pushes are kept",
        metadata: place(of: sender, reason: reason))
    case .senderMissing(let sender):
      logger.error(
        "Devices are registered of a platform without credentials; sends to them are deferred",
        metadata: place(of: sender))
    case .deviceRefused(let sender, let reason):
      logger.warning(
        "Push service refuses a device as if the credential were wrong; it accepts other pushes",
        metadata: place(of: sender, reason: reason))
    case .senderResumed(let sender):
      logger.notice("Push service works again; its circuit is closed", metadata: place(of: sender))
    case .malformed(let send, let sender, let reason):
      var metadata = place(of: sender, reason: reason)
      metadata[LogKeys.send] = "\(send)"
      logger.error("Push service called a request malformed", metadata: metadata)
    case .unregisteringSuspended(let sender):
      logger.error("Too many devices look dead; none is unregistered until fewer do", metadata: place(of: sender))
    case .unregisteringResumed(let sender):
      logger.notice("Dead devices are unregistered again", metadata: place(of: sender))
    case .deadLettered(let origin, let reason, let detail):
      logger.error(
        "Record dead-lettered",
        metadata: [
          LogKeys.topic: "\(origin.topic)", LogKeys.partition: "\(origin.partition)",
          LogKeys.offset: "\(origin.offset)",
          LogKeys.reason: "\(reason.rawValue)", LogKeys.detail: "\(detail)",
        ])
    case .broadcastPaused(let broadcast, let failed, let all):
      metrics.countPause(ofBroadcastIn: broadcast.hub)
      logger.error(
        "Broadcast paused because too many of its pushes fail",
        metadata: [
          LogKeys.send: "\(broadcast.send)", LogKeys.hub: "\(broadcast.hub)", LogKeys.count: "\(failed)/\(all)",
        ])
    case .productionRefused(let topic, let reason):
      logger.error(
        "Kafka refuses a record that must be written",
        metadata: [LogKeys.topic: "\(topic)", LogKeys.reason: "\(reason)"])
    case .positionsLeft(let partitions, let reason):
      logger.warning(
        "Partitions released without their last positions; settled sends may be repeated",
        metadata: [LogKeys.partitions: "\(partitions.map(\.description))", LogKeys.reason: "\(reason)"])
    case .workLeft(let partitions, let sends):
      logger.warning(
        "Partitions released with sends in flight; these will be repeated",
        metadata: [LogKeys.partitions: "\(partitions.map(\.description))", LogKeys.count: "\(sends)"])
    case .recoveryTimedOut(let partitions):
      logger.warning(
        "Committed offsets were not received in time; settled sends may be repeated",
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
