/// Where delays and deadlines are measured. A seam, so that a test can let an hour pass without waiting for it.
package protocol DelayClock: Sendable {
  /// Milliseconds since some fixed moment; never goes back. Callable from any thread.
  func uptime() -> Int64

  /// Returns after that time, or throws `CancellationError` when the task is cancelled first.
  func sleep(for duration: Duration) async throws
}

/// The machine's clock that only goes forward, and does not stop while the machine sleeps.
package struct SystemDelayClock: DelayClock {
  private let start = ContinuousClock.now

  package init() {}

  package func uptime() -> Int64 {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  package func sleep(for duration: Duration) async throws {
    try await ContinuousClock().sleep(for: duration)
  }
}
