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

  func list(_ query: SendQuery) async throws -> SendPage {
    try await check()
    let found = reports.filter { report in
      report.hub == query.hub && (query.state ?? report.state) == report.state
        && (query.sender ?? report.sender) == report.sender
    }
    let position =
      query.after.map { after in found.firstIndex { $0.id == after.send }.map { $0 + 1 } ?? found.count } ?? 0
    let page = found[position...].prefix(query.limit)
    let next = page.endIndex < found.endIndex ? page.last : nil
    return SendPage(
      sends: Array(page),
      next: next.map { SendQuery.Position(acceptedAt: $0.acceptedAt ?? UnixTime(milliseconds: 0), send: $0.id) })
  }

  func check() async throws {
    guard isReadable else { throw Unreadable() }
  }
}
