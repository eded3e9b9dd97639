import FanfareCore

/// A history that knows what the test tells it.
struct ScriptedHistory: SendHistory {
  struct Unreadable: Error {}

  var reports: [SendReport] = []
  var isReadable = true

  func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await check()
    return reports.first { $0.id == send && $0.hub == hub }
  }

  func check() async throws {
    guard isReadable else { throw Unreadable() }
  }
}
