package import FanfareCore
package import Logging
import ServiceLifecycle
import Synchronization

/// Runs a ledger whenever its store is available.
///
/// Starts the ledger once the store answers. When the store was unavailable during an assignment, the ledger leaves the
/// group, so that other members get the partitions, and a new one starts when the store is back.
package final class PatientLedger: Service {
  private let configuration: LedgerConfiguration
  private let store: any LedgerStore
  private let logger: Logger
  private let makeLedger: @Sendable () throws -> Ledger
  private let state: Mutex<State>

  private struct State {
    var ledger: Ledger
    /// Why the store is unavailable; nil when it is available.
    var storeFailure: LedgerError?
  }

  /// Creates a ledger; `run` starts it. Throws `RDKafkaError` when the consumer's configuration is invalid.
  /// `onRecorded` is called with each batch that has been written; `spans` takes the spans of sampled sends.
  package init(
    configuration: LedgerConfiguration, store: any LedgerStore, clock: any WallClock = SystemWallClock(),
    logger: Logger, spans: (any SpanSink)? = nil, onRecorded: (@Sendable (LedgerBatch) -> Void)? = nil
  ) throws {
    self.configuration = configuration
    self.store = store
    self.logger = logger
    makeLedger = {
      try Ledger(
        configuration: configuration, store: store, clock: clock, logger: logger, spans: spans, onRecorded: onRecorded)
    }
    state = Mutex(State(ledger: try makeLedger()))
  }

  /// The problem that keeps the ledger from recording, for readiness; nil when there is none.
  package var readinessProblem: String? {
    let (ledger, storeFailure) = state.withLock { ($0.ledger, $0.storeFailure) }
    return storeFailure?.message ?? ledger.readinessProblem
  }

  /// Throws `RDKafkaError` when the group's coordinator does not answer within the consumer's `commitTimeout`.
  package func checkKafka() async throws { try await state.withLock(\.ledger).checkKafka() }

  /// Records until graceful shutdown, as `Ledger.run` does. Throws `LedgerError` when the consumer ends by itself or
  /// the store is unusable.
  package func run() async throws {
    while try await waitForStore() {
      do { return try await state.withLock(\.ledger).run() } catch let error as LedgerError
        where error.code == .unavailable
      {
        logger.warning(
          "Ledger left its group; it rejoins when its store is available", metadata: [LogKeys.error: "\(error)"])
        // A consumer joins its group only once.
        let next = try makeLedger()
        state.withLock { ($0.ledger, $0.storeFailure) = (next, error) }
      }
    }
  }

  /// Returns true once the store answers, and false on graceful shutdown. Throws errors that a retry does not cure.
  private func waitForStore() async throws -> Bool {
    var failures = 0
    while !Task.isShuttingDownGracefully {
      do {
        _ = try await store.positions()
        if failures > 0 { logger.notice("Ledger store is available") }
        state.withLock { $0.storeFailure = nil }
        return true
      } catch let error as LedgerError where error.code == .unavailable {
        if failures == 0 { logger.warning("Ledger waits for its store", metadata: [LogKeys.error: "\(error)"]) }
        state.withLock { $0.storeFailure = error }
        // Ends early on graceful shutdown, which the loop's condition then sees.
        await cancelWhenGracefulShutdown { [delay = configuration.backoff.wait(failures)] in
          try? await Task.sleep(for: delay)
        }
        try Task.checkCancellation()
        failures += 1
      }
    }
    return false
  }
}
