@testable import fanfare_dev

/// Asks again and again until the answer is yes: another process's state has no signal to wait for.
func eventually(
  within limit: Duration = .seconds(60), _ what: String, _ condition: @escaping @Sendable () async throws -> Bool
) async throws {
  try await withTimeLimit(limit, what) {
    while try await !condition() { try await Task.sleep(for: .milliseconds(20)) }
  }
}
