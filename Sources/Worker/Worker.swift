package import FanfareCore
package import Logging
package import RDKafka
import ServiceLifecycle
import Synchronization

/// The heart of the product: takes sends from Kafka, looks up their devices, pushes, writes what became of each, and
/// only then lets Kafka forget them.
///
/// A send is settled when every device has its result and the status record is acknowledged; an offset is committed
/// when everything before it is settled, and with it what is settled above. So a crash loses nothing, and repeats
/// little more than what was in flight.
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
  private let mailbox = Mailbox()
  private let ownProblems = Mutex<[String]>([])

  /// Makes a worker; nothing happens before `run()`. Throws `WorkerConfiguration.Problem` when a limit makes no sense.
  ///
  /// `broadcastProducer` writes the segments of broadcasts and the statuses of their pages, for which the rest of each
  /// broadcast waits: it should not gather records for long. The consumer (see `WorkerConfiguration.consumer`) is the
  /// worker's own from now on: it runs and closes it. The producers and the senders are only used: they must run before
  /// the worker does, and until it has ended.
  package init(
    configuration: WorkerConfiguration, consumer: any RecordSource, producer: any RecordSink,
    broadcastProducer: any RecordSink,
    registry: any DeviceRegistry & BroadcastStore & PushQuotaStore,
    senders: [HubName: [Platform: any PushSender]], topics: Topics = Topics(), clock: any WallClock = SystemWallClock(),
    delays: any DelayClock = SystemDelayClock(), logger: Logger
  ) throws {
    try configuration.check()
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
  }

  /// What keeps the worker from doing its job now, one short sentence each; empty when it is ready. Names hubs and
  /// platforms, never sends or devices. From any thread.
  package var complaints: [String] {
    var complaints = ownProblems.withLock { $0 }
    for (number, sender) in table.senders.enumerated() {
      guard let complaint = sender?.readinessProblem else { continue }
      complaints.append("\(table.hub(ofSender: number))/\(table.platform(ofSender: number)): \(complaint)")
    }
    return complaints
  }

  /// The lifetime. A graceful shutdown takes nothing more, settles what is in flight within `drainDeadline`, commits
  /// the positions, leaves the group, and returns; cancellation leaves at once, and what was in flight is done again by
  /// others. Throws when the consumer fails for good.
  package func run() async throws {
    var engine = Engine(
      configuration: configuration, source: source, sink: sink, broadcastSink: broadcastSink, registry: registry,
      broadcasts: broadcasts, table: table, topics: topics, clock: clock,
      delays: delays, mailbox: mailbox, logger: logger
    ) { [self] problems in
      ownProblems.withLock { $0 = problems }
    }
    let (source, mailbox) = (source, mailbox)
    let result = await withGracefulShutdownHandler {
      await withDiscardingTaskGroup { group in
        group.addTask { await source.run() }
        group.addTask {
          for await event in source.events { mailbox.post { $0.events.append(event) } }
          // Also when cancelled: nothing comes any more, so the engine ends.
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

  /// Begins what a graceful shutdown begins.
  func shutDown() {
    mailbox.post { $0.isToShutDown = true }
  }

  /// Wakes the engine from time to time: the one timer of the worker.
  private func tick() async {
    while true {
      do {
        try await delays.sleep(for: configuration.tickInterval)
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
