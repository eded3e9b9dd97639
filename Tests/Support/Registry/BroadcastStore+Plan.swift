package import FanfareCore

extension BroadcastStore {
  /// Stores a plan without segments and rate.
  package func plan(
    _ broadcast: BroadcastID, pages: Int, at now: UnixTime
  ) async throws -> (pages: Int, segments: Int, isAnnounced: Bool) {
    try await plan(broadcast, BroadcastPlan(pages: pages), at: now)
  }
}
