import FanfareCore
import Logging
import RDKafka
import ServiceLifecycle
import Worker

/// Readmits the records in retry topics that are no longer configured: nothing is written to them any more, but
/// deferred records remain.
///
/// It looks for such topics once, at the start, and runs their pumps until the end: an idle pump costs little, and
/// another worker may still have the old configuration.
struct RetiredRetries: Service {
  private static let pause = Duration.seconds(5)

  let client: KafkaClientConfiguration
  let topics: Topics
  let producer: Producer
  let clock: any WallClock
  let logger: Logger

  func run() async throws {
    let pumps = await retired().map { retry in
      logger.notice("Consuming a retry topic that is no longer configured", metadata: [LogKeys.topic: "\(retry.name)"])
      return Result {
        RetryPump(
          consumer: try Consumer(configuration: RetryPump.consumer(client: client, retry: retry), logger: logger),
          producer: producer, topics: topics, delay: retry.delay, clock: clock, logger: logger)
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for pump in pumps {
        let pump = try pump.get()
        group.addTask { try await pump.run() }
      }
      group.addTask { try await gracefulShutdown() }
      try await group.waitForAll()
    }
  }

  /// Asks until the cluster answers; returns no topics if the role ends before.
  private func retired() async -> [Topics.Retry] {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          return topics.retired(among: try await LogReader(client: client, logger: logger).topics())
        } catch {
          // Components that depend on Kafka report its absence.
          do { try await Task.sleep(for: Self.pause) } catch { break }
        }
      }
      return []
    }
  }
}
