import FanfareCore
import Logging
import RDKafka

/// Drives the dispatcher: feeds it the mailbox's events and performs its actions.
///
/// One task, one turn per wake-up. Nothing here blocks: every wait is a child task that posts its end.
struct Engine {
  let configuration: WorkerConfiguration
  let source: any RecordSource
  let sink: any RecordSink
  /// For segments of broadcasts and statuses of pages: the rest of each broadcast waits for these.
  let broadcastSink: any RecordSink
  let registry: any DeviceRegistry
  let broadcasts: any BroadcastStore & PushQuotaStore
  let clock: any WallClock
  let delays: any DelayClock
  let mailbox: Mailbox
  let logger: Logger
  /// Takes the spans of sampled sends; nil: sends are not traced.
  let spans: (any SpanSink)?
  /// Told the violations of the dispatcher's invariants after each turn, and each step; nil: they are not looked for.
  let audit: WorkerAudit?
  /// Told about the held segments of broadcasts once a second.
  let reportSegments: @Sendable ([BroadcastShare]) -> Void
  /// Told when the readiness problems change.
  let reportReadiness: @Sendable ([ReadinessProblem]) -> Void

  var dispatcher: Dispatcher
  var table: SenderTable { dispatcher.table }
  var metrics: WorkerMetrics
  private var readinessProblems: [ReadinessProblem]
  private var lagDue: Int64 = 0
  /// The turns since everything was audited.
  private var unaudited = 0
  private var failure: RDKafkaError?

  init(
    configuration: WorkerConfiguration, source: any RecordSource, sink: any RecordSink, broadcastSink: any RecordSink,
    registry: any DeviceRegistry, broadcasts: any BroadcastStore & PushQuotaStore, table: SenderTable,
    topics: Topics, clock: any WallClock, delays: any DelayClock, mailbox: Mailbox, seed: UInt64, logger: Logger,
    spans: (any SpanSink)?, audit: WorkerAudit?,
    reportSegments: @escaping @Sendable ([BroadcastShare]) -> Void,
    reportReadiness: @escaping @Sendable ([ReadinessProblem]) -> Void
  ) {
    self.configuration = configuration
    self.source = source
    self.sink = sink
    self.broadcastSink = broadcastSink
    self.registry = registry
    self.broadcasts = broadcasts
    self.clock = clock
    self.delays = delays
    self.mailbox = mailbox
    self.logger = logger
    self.reportSegments = reportSegments
    self.spans = spans
    self.audit = audit
    self.reportReadiness = reportReadiness
    dispatcher = Dispatcher(
      configuration: configuration, table: table, topics: topics, seed: seed,
      isTracing: spans != nil, observe: audit?.stepped)
    metrics = WorkerMetrics(table: table, group: configuration.consumerGroup)
    readinessProblems = dispatcher.readinessProblems
    reportReadiness(readinessProblems)
  }

  /// Takes turns until the consumer's events end: after a drain, a fatal error of the consumer, or
  /// cancellation. Fails with the fatal error.
  mutating func run(in group: inout DiscardingTaskGroup) async -> Result<Void, RDKafkaError> {
    turn(Mail(), in: &group)
    while true {
      let mail = await mailbox.next()
      turn(mail, in: &group)
      if mail.hasEnded { break }
    }
    assert(dispatcher.checkInvariants().isEmpty, "\(dispatcher.checkInvariants())")
    return failure.map { .failure($0) } ?? .success(())
  }

  /// Takes one turn: handles all gathered events, then performs the actions they lead to.
  private mutating func turn(_ mail: Mail, in group: inout DiscardingTaskGroup) {
    let now = Moment(wall: clock.now(), uptime: delays.uptime())
    dispatcher.beginTurn(at: now)
    for pushed in mail.pushed { dispatcher.receive(pushed.results, from: pushed.sender) }
    for acknowledgement in mail.acknowledged { dispatcher.acknowledge(acknowledgement) }
    for answered in mail.answered { take(answered) }
    for lookedUp in mail.lookedUp { take(lookedUp) }
    for end in mail.unregistered { take(end) }
    // Before the events: a revocation that came with the end of a commit begins the next one.
    for committed in mail.committed { take(committed) }
    for answer in mail.recovered {
      dispatcher.recover(answer)
    }
    for event in mail.events { take(event) }
    if mail.isToShutDown { dispatcher.shutDown() }
    if mail.hasTicked {
      dispatcher.tick()
      report(at: now)
    }
    perform(dispatcher.finishTurn(), in: &group)
    if let audit { audit.turned(findViolations()) { dispatcher.load } }
  }

  /// Violations of the invariants: of the counters after every turn, of everything as often as its cost allows.
  private mutating func findViolations() -> [String] {
    unaudited += 1
    guard unaudited * 128 >= dispatcher.items.count + dispatcher.items.held.devices else {
      return dispatcher.checkCounters()
    }
    unaudited = 0
    return dispatcher.checkInvariants()
  }

  private mutating func take(_ event: ConsumerEvent) {
    switch event {
    case .records(let records): dispatcher.take(records)
    case .assigned(let partitions, let rebalance):
      // An assignment tells what is added; a rebalance that adds nothing would read as if everything was taken away.
      if !partitions.isEmpty {
        logger.info("Partitions assigned", metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
      }
      dispatcher.assign(partitions, rebalance)
    case .revoked(let partitions, let rebalance):
      logger.info("Partitions revoked", metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
      dispatcher.revoke(partitions, rebalance)
    case .lost(let partitions, let rebalance):
      logger.warning("Partitions lost", metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
      dispatcher.lose(partitions, rebalance)
    case .failed(let error):
      if error.isFatal { failure = error }
      logger.log(
        level: error.isFatal ? .error : .warning, "Kafka consumer reports an error",
        metadata: [LogKeys.error: "\(error)"])
    }
  }

  private mutating func take(_ lookedUp: Mail.LookedUp) {
    metrics.record(lookUp: lookedUp.duration)
    if let failure = lookedUp.failure, dispatcher.lookUps.failures == 0 {
      logger.error("The registry could not be asked", metadata: [LogKeys.error: "\(failure)"])
    }
    dispatcher.answer(lookedUp.answer)
  }

  private mutating func take(_ answered: Mail.Answered) {
    if let failure = answered.failure, dispatcher.broadcasts.failures == 0 {
      logger.error("The registry could not be asked about broadcasts", metadata: [LogKeys.error: "\(failure)"])
    }
    dispatcher.answer(answered.answer)
  }

  private mutating func take(_ committed: CommitEnd) {
    if let error = committed.error, dispatcher.partitions.commits.failure == nil {
      // Normal while the group comes to a new assignment.
      logger.log(
        level: error.code == .rebalancing ? .info : .warning, "Positions could not be committed",
        metadata: [LogKeys.error: "\(error)"])
    }
    dispatcher.committed(committed.offsets, committed.error)
  }

  private mutating func take(_ end: Mail.Unregistered) {
    dispatcher.unregistered()
    if let devices = end.devices {
      metrics.count(unregistered: devices, of: end.requested)
    } else {
      logger.warning("Dead devices could not be unregistered", metadata: [LogKeys.count: "\(end.requested.count)"])
    }
  }

  /// Updates gauges and readiness. Once per tick, not per turn.
  private mutating func report(at now: Moment) {
    metrics.show(dispatcher)
    if now.uptime >= lagDue {
      lagDue = now.uptime + 1000
      metrics.show(lag: source.lag(), partitions: &dispatcher.partitions, at: now.wall)
      reportSegments(dispatcher.broadcasts.held)
    }
    let problems = dispatcher.readinessProblems
    if problems != readinessProblems {
      readinessProblems = problems
      reportReadiness(problems)
    }
  }
}
