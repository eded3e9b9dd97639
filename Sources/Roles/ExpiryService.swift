import FanfareCore
import Logging
import Metrics
import Registry
import ServiceLifecycle

/// Clears out the registrations of apps that were not heard of for long, as long as the role lives: a step a second,
/// and when all have been looked at, again an hour later. A step that fails is made again a minute later. Several
/// processes may do so on one registry.
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
        // A role that ends breaks off what it asks for, which is nothing to warn of.
        try Task.checkCancellation()
        logger.warning("Stale registrations cannot be looked for now", metadata: [LogKeys.error: "\(error)"])
        try await Task.sleep(for: Self.afterFailure)
      }
    }
  }
}
