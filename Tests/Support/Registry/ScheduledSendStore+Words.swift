package import FanfareCore

extension ScheduledSendStore {
  /// Takes those whose time has come, of a store that can read all of them.
  package func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime
  ) async throws -> [ScheduledSend] {
    try await takeDue(limit, for: lease, until: end, at: now) { _, _ in }
  }
}
