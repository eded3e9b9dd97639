import ServiceLifecycle
import Synchronization

/// The visitor's tour as the last of the demo's services: it begins when the others run, and ends the whole when it is over.
final class TourService: Service {
  private let tour: Tour
  private let result = Mutex(false)

  init(tour: Tour) {
    self.tour = tour
  }

  /// Whether the tour came to its end and nothing was lost. False until then.
  var isComplete: Bool { result.withLock { $0 } }

  func run() async throws {
    let isComplete = try await cancelWhenGracefulShutdown { [tour] in try await tour.run() }
    result.withLock { $0 = isComplete }
  }
}
