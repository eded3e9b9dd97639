/// Shares the quotas of callers among the front ends of a deployment. It is in the registry's database.
///
/// Every method may be called from any task and any process at any time, and throws `RegistryError`. Users are compared
/// by the bytes of their names.
package protocol CallerQuotaStore: Sendable {
  /// Reserves permits of a user's rate.
  func reserve(_ demand: RateDemand, of rate: CallerRate, at now: UnixTime) async throws -> RateGrant

  /// Counts a large broadcast as open until it is finished or cancelled, or until `end`.
  ///
  /// Returns false, with nothing changed, if the user has `limit` open ones already. A broadcast that is counted
  /// already stays counted.
  func open(_ broadcast: BroadcastID, by user: String, until end: UnixTime, limit: Int, at now: UnixTime) async throws
    -> Bool

  /// Stops counting a broadcast that was not accepted.
  func close(_ broadcast: BroadcastID, by user: String) async throws

  /// Estimates how many registrations a worker examines for each audience, from samples that are up to a minute old.
  func estimatedDevices(of audiences: [Audience], hub: HubName) async throws -> [Int]

  /// What the users of a hub have used and not got back, by user; of one user, or of the first `limit` behind `after`.
  func quotaUse(hub: HubName, user: String?, after: String?, limit: Int, at now: UnixTime) async throws -> [QuotaUse]
}

/// A rate of one user in one hub.
package struct CallerRate: Hashable, Sendable {
  package let hub: HubName
  package let user: String
  package let name: QuotaName
  package let limit: RateLimit

  package init(hub: HubName, user: String, name: QuotaName, limit: RateLimit) {
    self.hub = hub
    self.user = user
    self.name = name
    self.limit = limit
  }
}

/// The use of the quotas by one user.
package struct QuotaUse: Hashable, Sendable {
  package let user: String
  /// The end of the user's reservations of each rate, in microseconds since 1970.
  package let reservedUntil: [QuotaName: Int64]
  /// The objects that exist, for the quotas that limit those.
  package let stocks: [QuotaName: Int]
  /// The user's registrations, counted up to `mostDevices`.
  package let devices: Int

  package static let mostDevices = 100_000

  package init(user: String, reservedUntil: [QuotaName: Int64], stocks: [QuotaName: Int], devices: Int) {
    self.user = user
    self.reservedUntil = reservedUntil
    self.stocks = stocks
    self.devices = devices
  }
}

/// The most scheduled sends of one sender; 0: no limit.
package struct ScheduledSendLimit: Hashable, Sendable {
  /// Sends that wait.
  package let sends: Int
  /// Bytes of the sends that wait or were cancelled.
  package let bytes: Int

  package init(sends: Int, bytes: Int) {
    self.sends = sends
    self.bytes = bytes
  }

  package static let none = Self(sends: 0, bytes: 0)

  /// Whether a count of a sender's sends, made at a moment in Unix milliseconds, must be repeated before a refusal.
  /// Counting at every refusal would cost the database more than the sends.
  package static func isOld(_ countedAt: Int64, at now: UnixTime) -> Bool {
    !(0..<10_000).contains(now.milliseconds.subtractingClamped(countedAt))
  }

  /// The quota that the use would exceed; nil if none.
  package func exceeded(bySends sends: Int, bytes: Int) -> QuotaName? {
    if self.sends > 0, sends > self.sends { return .scheduledSends }
    return self.bytes > 0 && bytes > self.bytes ? .scheduledBytes : nil
  }
}
