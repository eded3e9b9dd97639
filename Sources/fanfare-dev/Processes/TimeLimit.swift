/// What did not happen in time.
struct TimeLimitExceeded: Error, CustomStringConvertible {
  let description: String
}

/// Waits for something for as long as it may take at most. Throws `TimeLimitExceeded`; `what` is asked then, and only
/// then.
func withTimeLimit<Value: Sendable>(
  _ limit: Duration, _ what: @autoclosure @escaping @Sendable () -> String,
  _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  try await withThrowingTaskGroup(of: Value.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: limit)
      throw TimeLimitExceeded(description: "waited \(limit) for \(what())")
    }
    guard let first = try await group.next() else { throw CancellationError() }
    group.cancelAll()
    return first
  }
}
