import FanfareCore
import Logging

/// Returns unused permits of callers to the database, so that other front ends can grant them.
///
/// Nothing waits for it. Permits whose return fails are lost, like those of a process that dies: they become free again
/// at the rate of the quota.
struct PermitReturns: Sendable {
  /// The pause between two returns.
  static let interval: Duration = .seconds(1)
  /// The most returns in one transaction.
  private static let batch = 500

  let quotas: [HubQuotas]
  let store: any CallerQuotaStore
  let clock: any WallClock
  let logger: Logger

  /// Returns expired and refunded permits, until it is cancelled.
  func run() async {
    while true {
      do { try await Task.sleep(for: Self.interval) } catch { return }
      await giveBack()
    }
  }

  /// Returns expired and refunded permits, or `all` that no send has used.
  func giveBack(all: Bool = false) async {
    let now = clock.now()
    let returns = quotas.flatMap { $0.takeReturns(all: all, at: now) }
    for start in stride(from: 0, to: returns.count, by: Self.batch) {
      do {
        try await store.giveBack(Array(returns[start..<min(start + Self.batch, returns.count)]))
      } catch {
        logger.debug(
          "Unused permits could not be returned; they become free again with time",
          metadata: [LogKeys.count: "\(returns.count - start)", LogKeys.cause: "\(error)"])
        return
      }
    }
  }
}
