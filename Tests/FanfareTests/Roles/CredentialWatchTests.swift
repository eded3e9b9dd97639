import Support
import Testing

@testable import Roles
@testable import SettingsTable

@Suite(.timeLimit(.minutes(1))) struct CredentialWatchTests {
  @Test func fileIsUsedOnceItsPermissionsAreSafe() async throws {
    let file = try SecretFixture("secret\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    try file.set(mode: 0o644)
    let secret = SecretFile(key: "key", path: file.path, isExemptFromCheck: false)
    let (attempts, attempted) = AsyncStream.makeStream(of: Bool.self)
    let watch = CredentialWatch(metadata: [:], files: [file.path], logger: LogRecorder().logger) {
      do {
        _ = try secret.text()
        attempted.yield(true)
      } catch {
        attempted.yield(false)
        throw error
      }
      return true
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await watch.run() }
      var results = attempts.makeAsyncIterator()
      #expect(await results.next() == false)
      try file.set(mode: 0o600)
      #expect(await results.next() == true)
      group.cancelAll()
    }
  }
}
