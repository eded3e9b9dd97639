package import FanfareCore
package import FrontEnd
package import Logging
import RDKafka
import Synchronization

/// The dead letters of a deployment for its front ends, over the dead-letter topic.
///
/// Each request reads the topic with clients of its own, which end with it: an idle front end keeps no connection for
/// this. A request takes at most about `timeLimit`. Few run at a time; the others wait as long at most.
package final class KafkaDeadLetters: DeadLetterStore {
  /// The most requests at a time.
  private static let mostReaders = 2
  private static let mostWaiting = 256
  /// The most records that one page examines; the first page counts more, for an overview.
  private static let recordsPerPage: (first: Int64, further: Int64) = (5_000, 1_000)

  private let kafka: KafkaSettings
  private let timeLimit: Duration
  private let logger: Logger
  private let reads: ReadGate
  private let isRedriving = Mutex(false)

  package init(_ kafka: KafkaSettings, timeLimit: Duration = .seconds(20), logger: Logger) {
    self.kafka = kafka
    self.timeLimit = timeLimit
    self.logger = logger
    reads = ReadGate("the dead letters", slots: Self.mostReaders, waiting: Self.mostWaiting, patience: timeLimit)
  }

  package func list(_ query: DeadLetterQuery) async throws(DeadLetterError) -> DeadLetterPage {
    try await reading { box in
      try await box.page(
        query, records: query.before == nil ? Self.recordsPerPage.first : Self.recordsPerPage.further)
    }
  }

  package func letter(at place: LogPlace) async throws(DeadLetterError) -> DeadLetter? {
    try await reading { box in
      var found: DeadLetter?
      _ = try await box.read(only: [place]) { item in
        found = item.letter
        return false
      }
      return found
    }
  }

  package func redrive(_ order: RedriveOrder) async throws(DeadLetterError) -> RedriveOutcome {
    // Two at a time could redrive the same letter.
    let isFree = isRedriving.withLock { isRedriving in
      defer { isRedriving = true }
      return !isRedriving
    }
    guard isFree else { throw .busy }
    defer { isRedriving.withLock { $0 = false } }
    let redrive = Redrive(
      kafka: kafka, client: Self.client, isDryRun: order.isDryRun, isRepeated: order.isRepeated,
      patience: .ends(at: .now + timeLimit), logger: logger)
    return try await translating {
      switch order.selection {
      case .places(let places): try await redrive.run(only: places, after: order.after, where: order.isVisible)
      case .reason(let reason):
        try await redrive.run(only: nil, after: order.after, limit: RedriveOrder.maximumCount) {
          $0.reason == reason && order.isVisible($0)
        }
      }
    }
  }

  private static let client = "api-dead-letters"

  private func reading<Value>(
    _ read: (DeadLetterBox) async throws -> Value
  ) async throws(DeadLetterError) -> Value {
    try await translating {
      try await reads.run {
        try await read(
          DeadLetterBox(kafka, client: Self.client, patience: .ends(at: .now + timeLimit), logger: logger))
      }
    }
  }

  private func translating<Value>(_ body: () async throws -> Value) async throws(DeadLetterError) -> Value {
    do {
      return try await body()
    } catch let interruption as Redrive.Interruption {
      logger.warning("A redrive was interrupted", metadata: [LogKeys.error: "\(interruption.cause)"])
      throw .interrupted(redriven: interruption.redriven, next: interruption.next)
    } catch is TopicScan.TooLong {
      throw .tooMuch
    } catch is TooManyReads {
      throw .busy
    } catch is CancellationError {
      throw .unavailable
    } catch {
      logger.warning("The dead letters cannot be read", metadata: [LogKeys.error: "\(error)"])
      throw .unavailable
    }
  }
}
