package import FanfareCore
package import Logging
package import RDKafka
import ServiceLifecycle
import Synchronization

/// Takes sends from Kafka, pushes them to their devices, and writes the results before it commits
/// offsets.
///
/// A send is settled when every device has its result and the status record is acknowledged. An offset is committed
/// when everything before it is settled; its metadata holds the runs settled above it. So a crash loses nothing, and
/// repeats little more than the pushes in flight.
package final class Worker: Service {
  private let configuration: WorkerConfiguration
  private let source: any RecordSource
  private let sink: any RecordSink
  private let broadcastSink: any RecordSink
  private let registry: any DeviceRegistry
  private let broadcasts: any BroadcastStore & PushQuotaStore
  private let table: SenderTable
  private let topics: Topics
  private let clock: any WallClock
  private let delays: any DelayClock
  private let logger: Logger
  private let spans: (any SpanSink)?
  private let seed: UInt64
  private let audit: WorkerAudit?
  private let mailbox = Mailbox()
  private let ownProblems = Mutex<[ReadinessProblem]>([])
  private let segments = Mutex<[BroadcastShare]>([])

  /// Makes a worker; it does nothing before `run()`.
  ///
  /// `broadcastProducer` writes segments of broadcasts and statuses of pages, for which the rest of each broadcast
  /// waits: it should not linger. The worker owns the consumer (see `WorkerConfiguration.consumer`): it runs and closes
  /// it. Producers and senders must run before the worker does, and until it has ended. `seed` decides the jitter of
  /// delays and random ids. `spans` takes the spans of sampled sends. `audit` is told every step, and the violations of
  /// the dispatcher's invariants after each turn; to find them costs more than the turn.
  package init(
    configuration: WorkerConfiguration, consumer: any RecordSource, producer: any RecordSink,
    broadcastProducer: any RecordSink,
    registry: any DeviceRegistry & BroadcastStore & PushQuotaStore,
    senders: [HubName: [Platform: any PushSender]], topics: Topics = Topics(), clock: any WallClock = SystemWallClock(),
    delays: any DelayClock = SystemDelayClock(), seed: UInt64 = .random(in: 0 ... .max), logger: Logger,
    spans: (any SpanSink)? = nil, audit: WorkerAudit? = nil
  ) {
    self.configuration = configuration
    source = consumer
    sink = producer
    broadcastSink = broadcastProducer
    self.registry = registry
    broadcasts = registry
    table = SenderTable(senders)
    self.topics = topics
    self.clock = clock
    self.delays = delays
    self.logger = logger
    self.spans = spans
    self.seed = seed
    self.audit = audit
  }

  /// Why the worker is not ready, one short sentence each; empty if it is.
  /// Names hubs and platforms, never sends or devices. From any thread.
  package var readinessProblems: [ReadinessProblem] {
    var problems = ownProblems.withLock { $0 }
    for (number, sender) in table.senders.enumerated() {
      guard let problem = sender?.readinessProblem else { continue }
      problems.append(table.problem(ofSender: number, problem))
    }
    return problems
  }

  /// The segments of broadcasts that the worker holds, at most a second ago. From any thread.
  package var heldSegments: [BroadcastShare] { segments.withLock { $0 } }

  /// Runs the worker.
  /// On graceful shutdown it takes no more records, settles those in flight within `drainDeadline`, commits, leaves the
  /// group, and returns. On cancellation it leaves at once, and others repeat the sends in flight. Throws when the
  /// consumer fails for good.
  package func run() async throws {
    var engine = Engine(
      configuration: configuration, source: source, sink: sink, broadcastSink: broadcastSink, registry: registry,
      broadcasts: broadcasts, table: table, topics: topics, clock: clock,
      delays: delays, mailbox: mailbox, seed: seed, logger: logger, spans: spans, audit: audit,
      reportSegments: { [self] held in segments.withLock { $0 = held } }
    ) { [self] problems in
      ownProblems.withLock { $0 = problems }
    }
    let (source, mailbox) = (source, mailbox)
    let result = await withGracefulShutdownHandler {
      await withDiscardingTaskGroup { group in
        group.addTask { await source.run() }
        group.addTask {
          for await event in source.events { mailbox.post { $0.events.append(event) } }
          // Also on cancellation: no further event comes, so the engine ends.
          mailbox.post { $0.hasEnded = true }
        }
        group.addTask { [self] in await tick() }
        let result = await engine.run(in: &group)
        group.cancelAll()
        return result
      }
    } onGracefulShutdown: {
      self.shutDown()
    }
    try result.get()
  }

  /// Begins a graceful shutdown.
  func shutDown() {
    mailbox.post { $0.isToShutDown = true }
  }

  /// Wakes the engine at every tick: the only timer of the worker.
  private func tick() async {
    while true {
      do {
        try await delays.sleep(for: configuration.times.tickInterval)
      } catch {
        // Cancelled: the worker ends.
        return
      }
      mailbox.post { $0.hasTicked = true }
    }
  }
}

extension Consumer: RecordSource {}
extension Producer: RecordSink {}
