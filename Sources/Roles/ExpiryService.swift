import FanfareCore
import Logging
import Metrics
import Registry
import ServiceLifecycle

/// Removes the registrations of apps that have not contacted the front end for the configured time, and those whose
/// validity has ended.
///
/// It takes one step a second. After it has checked all registrations, it starts again an hour later. It repeats a
/// failed step after a minute. Several processes may run it on one registry.
struct ExpiryService: Service {
  private static let betweenSteps: Duration = .seconds(1)
  private static let afterFailure: Duration = .seconds(60)
  private static let betweenWalks: Duration = .seconds(3600)

  let expiry: RegistrationExpiry
  let logger: Logger

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await walk()
          try await Task.sleep(for: Self.betweenWalks)
        } catch is CancellationError {
          return
        }
      }
    }
  }

  private func walk() async throws {
    try await expiry.walk { hub, removed in
      switch removed {
      case .success(let removed):
        if removed > 0 {
          Counter(label: "fanfare_registrations_expired_total", dimensions: [("hub", hub.rawValue)]).increment(
            by: removed)
          logger.info("Removed stale registrations", metadata: [LogKeys.hub: "\(hub)", LogKeys.count: "\(removed)"])
        }
        try await Task.sleep(for: Self.betweenSteps)
      case .failure(let error):
        // A cancelled query at shutdown is not worth a warning.
        try Task.checkCancellation()
        logger.warning("Stale registrations could not be removed", metadata: [LogKeys.error: "\(error)"])
        try await Task.sleep(for: Self.afterFailure)
      }
    }
  }
}
