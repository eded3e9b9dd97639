import Foundation

/// Runs a test in a directory of its own, which is removed in any case; unless `FANFARE_TEST_KEEP` is set, for whoever
/// wants to read what the processes said.
func withDirectory<Value>(_ name: String, _ body: (URL) async throws -> Value) async throws -> Value {
  let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(name)-\(UUID())")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  let result: Result<Value, any Error>
  do { result = .success(try await body(directory)) } catch { result = .failure(error) }
  if ProcessInfo.processInfo.environment["FANFARE_TEST_KEEP"] == nil {
    try FileManager.default.removeItem(at: directory)
  }
  return try result.get()
}
