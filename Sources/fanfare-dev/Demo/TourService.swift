import ServiceLifecycle
import Synchronization

/// The visitor's tour as the last of the demo's services: it begins when the others run, and ends the whole when it is
/// over.
final class TourService: Service {
  private let tour: @Sendable () async throws -> Bool
  private let result = Mutex(false)

  /// `tour` returns true if it came to its end and nothing was lost.
  init(_ tour: @escaping @Sendable () async throws -> Bool) {
    self.tour = tour
  }

  /// Whether the tour came to its end and nothing was lost. False until then.
  var isComplete: Bool { result.withLock { $0 } }

  func run() async throws {
    do {
      let isComplete = try await cancelWhenGracefulShutdown { [tour] in try await tour() }
      result.withLock { $0 = isComplete }
    } catch {
      // The visitor has seen enough, and that is no failure of what it interrupts.
      guard Task.isShuttingDownGracefully else { throw error }
    }
  }
}
