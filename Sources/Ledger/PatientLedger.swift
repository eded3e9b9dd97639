package import FanfareCore
package import Logging
import ServiceLifecycle
import Synchronization

/// A ledger that outlives its store's absence: it begins once the store answers, and where an assignment has waited in
/// vain for the store it leaves the group and begins anew when the store is back. The other members have the partitions
/// meanwhile.
package final class PatientLedger: Service {
  private let configuration: LedgerConfiguration
  private let store: any LedgerStorage
  private let clock: any WallClock
  private let logger: Logger
  private let onRecorded: (@Sendable (LedgerBatch) -> Void)?
  private let state: Mutex<State>

  private struct State {
    var ledger: Ledger
    /// Why the store cannot be used now; nil when it can.
    var absence: LedgerError?
  }

  /// Makes a ledger that has not begun. Throws `RDKafkaError` when the consumer's configuration is wrong. `onRecorded`
  /// is told of each batch that is in the store.
  package init(
    configuration: LedgerConfiguration, store: any LedgerStorage, clock: any WallClock = SystemWallClock(),
    logger: Logger,
    onRecorded: (@Sendable (LedgerBatch) -> Void)? = nil
  ) throws {
    self.configuration = configuration
    self.store = store
    self.clock = clock
    self.logger = logger
    self.onRecorded = onRecorded
    let ledger = try Ledger(
      configuration: configuration, store: store, clock: clock, logger: logger, onRecorded: onRecorded)
    state = Mutex(State(ledger: ledger))
  }

  /// What keeps the ledger from recording now, for readiness; nil when nothing does.
  package var complaint: String? {
    let (ledger, absence) = state.withLock { ($0.ledger, $0.absence) }
    return absence?.message ?? ledger.complaint
  }

  /// Throws `RDKafkaError` when the group's coordinator does not answer within the consumer's `commitTimeout`.
  package func checkKafka() async throws { try await state.withLock(\.ledger).checkKafka() }

  /// Records until graceful shutdown, as `Ledger.run` does. Throws `LedgerError` when the consumer ends by itself, or
  /// the store can never be used.
  package func run() async throws {
    while try await waitForStore() {
      do { return try await state.withLock(\.ledger).run() } catch let error as LedgerError
        where error.code == .unavailable
      {
        logger.warning(
          "The ledger leaves its group and begins anew when its store is there", metadata: [LogKeys.error: "\(error)"])
        // Its consumer has left the group, and a consumer joins only once.
        let next = try Ledger(
          configuration: configuration, store: store, clock: clock, logger: logger, onRecorded: onRecorded)
        state.withLock { ($0.ledger, $0.absence) = (next, error) }
      }
    }
  }

  /// Returns true once the store answers, and false when the process is to end before. Throws what no waiting mends.
  private func waitForStore() async throws -> Bool {
    var (delay, isFirst) = (configuration.firstRetryDelay, true)
    while !Task.isShuttingDownGracefully {
      do {
        _ = try await store.positions()
        if !isFirst { logger.notice("The ledger's store is there") }
        state.withLock { $0.absence = nil }
        return true
      } catch let error as LedgerError where error.code == .unavailable {
        if isFirst { logger.warning("The ledger waits for its store", metadata: [LogKeys.error: "\(error)"]) }
        isFirst = false
        state.withLock { $0.absence = error }
        // Ends early when the process is to end, which the loop then sees.
        await cancelWhenGracefulShutdown { [delay] in try? await Task.sleep(for: delay) }
        try Task.checkCancellation()
        delay = min(delay * 2, configuration.longestRetryDelay)
      }
    }
    return false
  }
}
