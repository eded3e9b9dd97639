/// The clock of delays and deadlines.
/// A protocol, so that a test can let an hour pass without waiting.
package protocol DelayClock: Sendable {
  /// Milliseconds since some fixed moment; never goes back. Callable from any thread.
  func uptime() -> Int64

  /// Returns after that time, or throws `CancellationError` when the task is cancelled first.
  func sleep(for duration: Duration) async throws
}

/// The machine's continuous clock.
package struct SystemDelayClock: DelayClock {
  private let start = ContinuousClock.now

  package init() {}

  package func uptime() -> Int64 { (ContinuousClock.now - start).milliseconds }

  package func sleep(for duration: Duration) async throws {
    try await ContinuousClock().sleep(for: duration)
  }
}
