import FanfareCore
import Logging
import RDKafka
import ServiceLifecycle
import Worker

/// Brings back what lies in retry topics that are not configured any more: nobody puts anything there, but what was
/// there before waits for its time.
///
/// The topics are looked for once, at the start, and their pumps run until the end: an idle one costs little, and
/// another worker may still be configured as before.
struct RetiredRetries: Service {
  private static let pause = Duration.seconds(5)

  let client: KafkaClientConfiguration
  let topics: Topics
  let producer: Producer
  let clock: any WallClock
  let logger: Logger

  func run() async throws {
    let pumps = await retired().map { retry in
      logger.notice("A retry topic is served that is not configured", metadata: [LogKeys.topic: "\(retry.name)"])
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

  /// Asks until the cluster answers, or the role is to end: then there are none.
  private func retired() async -> [Topics.Retry] {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          return topics.retired(among: try await LogReader(client: client, logger: logger).topics())
        } catch {
          // That Kafka is not there is said by those who need it more.
          do { try await Task.sleep(for: Self.pause) } catch { break }
        }
      }
      return []
    }
  }
}
