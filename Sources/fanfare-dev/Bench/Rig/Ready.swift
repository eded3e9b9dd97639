/// Waits until a role says that it can do its job.
enum Ready {
  /// Asks `/readyz` of the role's operations listener, which it announces, or of the port.
  static func wait(for process: ChildProcess, port: Int? = nil) async throws {
    let address = if let port { "127.0.0.1:\(port)" } else { try await process.address(of: "operations") }
    let client = APIClient(base: "http://" + address)
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      do {
        _ = try await client.request("GET", "/readyz", user: "bench")
        return
      } catch {
        guard error is APIClient.Refusal, ContinuousClock.now < deadline else {
          throw BenchError("\(process.name) is not ready: \(error)\n\(process.lastWords)")
        }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }
}
