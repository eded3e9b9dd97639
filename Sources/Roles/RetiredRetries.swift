import FanfareCore
import Logging
import RDKafka
import ServiceLifecycle
import Worker

/// Readmits the records that remain in retry topics that are no longer configured.
///
/// It looks for such topics once, at the start, and runs their pumps until shutdown: an idle pump costs little, and
/// another worker with the old configuration may still defer records to them.
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
        try Pump(
          RetryTopic(retry, topics: topics, logger: logger), client: client, producer: producer, clock: clock,
          logger: logger)
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

  /// Finds these topics.
  ///
  /// Repeats the request until the cluster answers; returns none if the role ends before.
  private func retired() async -> [Topics.Retry] {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          return topics.retired(among: try await LogReader(client: client, logger: logger).topics())
        } catch {
          // Other components report that Kafka is unavailable.
          do { try await Task.sleep(for: Self.pause) } catch { break }
        }
      }
      return []
    }
  }
}
