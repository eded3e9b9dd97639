import Synchronization

/// An answer that a client waits for. Ends the work for it when the client has gone. Thread-safe.
package final class PendingAnswer: Sendable {
  private struct State {
    var isAbandoned = false
    /// Cancels the work.
    var cancel: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// Whether the connection or stream has ended before the answer.
  package var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

  /// Notes that the connection or stream has ended.
  func abandon() {
    let cancel = state.withLock { state in
      state.isAbandoned = true
      return state.cancel.take()
    }
    cancel?()
  }

  /// Runs work that serves this answer alone, outside of the event loop. When the client goes, the work is cancelled,
  /// and this throws `CancellationError`.
  ///
  /// Only for reads: a change must be carried out to its end, and counted.
  package func whileAwaited<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let task = Task { try await work() }
    let isAbandoned = state.withLock { state in
      state.cancel = { task.cancel() }
      return state.isAbandoned
    }
    if isAbandoned { task.cancel() }
    defer { state.withLock { $0.cancel = nil } }
    do {
      return try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
    } catch {
      throw self.isAbandoned ? CancellationError() : error
    }
  }
}
