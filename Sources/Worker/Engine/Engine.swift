import FanfareCore
import Logging
import RDKafka

/// The one owner of a worker's state: reads what has gathered in the mailbox, lets the state decide, and performs what
/// it says. One task, one turn per wake-up; nothing here blocks, and whatever must wait is a child task that posts its
/// end.
struct Engine {
  let configuration: WorkerConfiguration
  let source: any RecordSource
  let sink: any RecordSink
  /// For the segments of broadcasts and the statuses of their pages, for which the rest of each broadcast waits.
  let broadcastSink: any RecordSink
  let registry: any DeviceRegistry
  let broadcasts: any BroadcastStore & PushQuotaStore
  let table: SenderTable
  let clock: any WallClock
  let delays: any DelayClock
  let mailbox: Mailbox
  let logger: Logger
  /// Told when what keeps the worker from working changes.
  let complain: @Sendable ([String]) -> Void

  var state: DispatchState
  var metrics: WorkerMetrics
  var complaints: [String]
  var lagDue: Int64 = 0
  private var failure: RDKafkaError?

  init(
    configuration: WorkerConfiguration, source: any RecordSource, sink: any RecordSink, broadcastSink: any RecordSink,
    registry: any DeviceRegistry, broadcasts: any BroadcastStore & PushQuotaStore,
    table: SenderTable,
    topics: Topics, clock: any WallClock, delays: any DelayClock, mailbox: Mailbox, logger: Logger,
    complain: @escaping @Sendable ([String]) -> Void
  ) {
    self.configuration = configuration
    self.source = source
    self.sink = sink
    self.broadcastSink = broadcastSink
    self.registry = registry
    self.broadcasts = broadcasts
    self.table = table
    self.clock = clock
    self.delays = delays
    self.mailbox = mailbox
    self.logger = logger
    self.complain = complain
    state = DispatchState(
      configuration: configuration, table: table, topics: topics, seed: UInt64.random(in: 0 ... .max))
    metrics = WorkerMetrics(table: table)
    complaints = state.complaints
    complain(complaints)
  }

  /// Takes turns until the consumer's events are over, which is after a drain, a fatal error of the consumer, or
  /// cancellation. Fails with the fatal error.
  mutating func run(in group: inout DiscardingTaskGroup) async -> Result<Void, RDKafkaError> {
    turn(Mail(), in: &group)
    while true {
      let mail = await mailbox.next()
      turn(mail, in: &group)
      if mail.hasEnded { break }
    }
    return failure.map { .failure($0) } ?? .success(())
  }

  /// One turn: everything that has gathered, then everything it leads to.
  private mutating func turn(_ mail: Mail, in group: inout DiscardingTaskGroup) {
    let now = Moment(wall: clock.now(), uptime: delays.uptime())
    var effects = Effects(senders: table.senders.count)
    for pushed in mail.pushed { state.receive(pushed.results, from: pushed.sender, at: now, into: &effects) }
    for acknowledgement in mail.acknowledged { state.acknowledge(acknowledgement, at: now, into: &effects) }
    for answered in mail.answered { take(answered, at: now, into: &effects) }
    for lookedUp in mail.lookedUp { take(lookedUp, at: now, into: &effects) }
    for dropped in mail.dropped { take(dropped) }
    // Before the events: a revocation that came with the end of a commit begins the next one.
    for committed in mail.committed { take(committed, at: now) }
    for resumed in mail.resumed {
      state.resume(resumed.number, from: resumed.committed, kept: resumed.kept, into: &effects)
    }
    for event in mail.events { take(event, at: now, into: &effects) }
    if mail.isToShutDown { state.shutDown(at: now) }
    if mail.hasTicked {
      state.tick(at: now, into: &effects)
      report(at: now)
    }
    state.finishTurn(at: now, into: &effects)
    perform(effects, in: &group)
  }

  private mutating func take(_ event: ConsumerEvent, at now: Moment, into effects: inout Effects) {
    switch event {
    case .records(let records): state.take(records, at: now, into: &effects)
    case .assigned(let partitions, let rebalance):
      logger.info("Partitions assigned", metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
      state.assign(partitions, rebalance, at: now, into: &effects)
    case .revoked(let partitions, let rebalance):
      logger.info("Partitions revoked", metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
      state.revoke(partitions, rebalance, at: now)
    case .lost(let partitions, let rebalance):
      logger.warning("Partitions lost", metadata: [LogKeys.partitions: "\(partitions.map(\.description))"])
      state.lose(partitions, rebalance, into: &effects)
    case .failed(let error):
      if error.isFatal { failure = error }
      logger.error("The consumer reported an error", metadata: [LogKeys.error: "\(error)"])
    }
  }

  private mutating func take(_ lookedUp: Mail.LookedUp, at now: Moment, into effects: inout Effects) {
    metrics.record(lookUp: lookedUp.duration)
    if let failure = lookedUp.failure, state.failedLookUps == 0 {
      logger.error("The registry cannot be asked", metadata: [LogKeys.error: "\(failure)"])
    }
    state.answer(lookedUp.answer, at: now, into: &effects)
  }

  private mutating func take(_ answered: Mail.Answered, at now: Moment, into effects: inout Effects) {
    if let failure = answered.failure, state.failedQuestions == 0 {
      logger.error("The registry cannot be asked about broadcasts", metadata: [LogKeys.error: "\(failure)"])
    }
    state.answer(answered.answer, at: now, into: &effects)
  }

  private mutating func take(_ committed: Mail.Committed, at now: Moment) {
    if let error = committed.error, state.commits.failure == nil {
      // In the course of things while the group comes to a new assignment; anything else should be known, once.
      logger.log(
        level: error.code == .rebalancing ? .info : .warning, "Positions could not be committed",
        metadata: [LogKeys.error: "\(error)"])
    }
    state.committed(committed.offsets, committed.error, at: now)
  }

  private mutating func take(_ dropped: Mail.Dropped) {
    state.dropsEnded()
    if let devices = dropped.dropped {
      metrics.count(dropped: devices, of: dropped.requested)
    } else {
      logger.warning("Dead devices could not be dropped", metadata: [LogKeys.count: "\(dropped.requested.count)"])
    }
  }
}
