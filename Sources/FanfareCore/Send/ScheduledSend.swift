/// Phantom type of a lease's id.
package enum LeaseSubject {}

/// The id of a lease on scheduled sends: one scheduler of one process.
package typealias LeaseID = Identifier<LeaseSubject>

/// A send that is held until it is due.
package struct ScheduledSend: Hashable, Sendable {
  /// How far ahead a send may be scheduled: a leap year.
  package static let maximumDelay: Duration = .seconds(366 * 86_400)

  /// The state. The raw values are stored in databases: never change one.
  package enum State: String, CaseIterable, Sendable {
    /// It waits until it is due.
    case held
    /// It waits until it is `held` again, even when it is due.
    case paused
    /// It was produced to the sends topic, or is being produced.
    case fired
    /// It is never produced.
    case cancelled
  }

  /// The send as it will be produced.
  /// Its time of acceptance is the moment for which it is scheduled.
  package let send: SendRequest
  /// When the caller's request was accepted.
  package let scheduledAt: UnixTime
  package let state: State
  /// Whether an earlier lease on it expired, so that it may be in the sends topic already.
  ///
  /// Until its production is certain, it must not be reported as cancelled. Set only by `takeDue`.
  package let mayBeEnqueued: Bool

  /// When it is due.
  package var due: UnixTime { send.acceptedAt }

  package init(send: SendRequest, scheduledAt: UnixTime, state: State = .held, mayBeEnqueued: Bool = false) {
    self.send = send
    self.scheduledAt = scheduledAt
    self.state = state
    self.mayBeEnqueued = mayBeEnqueued
  }
}

/// Stores scheduled sends until they are due. All front ends share it and lease sends from it.
///
/// Every method may be called from any task and any process at any time. When a method returns, its change is durable
/// and visible to every later call. If a method throws `RegistryError`, it has changed nothing, unless
/// `isOutcomeUnknown`.
package protocol ScheduledSendStore: Sendable {
  /// Stores sends, all or none.
  /// A send whose id exists in its hub stays unchanged, whatever its state.
  ///
  /// Returns the quota that a sender would exceed; then nothing is stored.
  func hold(_ sends: [ScheduledSend], within limit: ScheduledSendLimit, at now: UnixTime) async throws -> QuotaName?

  /// The earliest moment at which a send can be taken: it is due, or another front end's lease on
  /// it ends. Nil if none is held.
  func nextDue() async throws -> UnixTime?

  /// Leases the due sends until `end`, the longest due first and at most `limit`.
  ///
  /// A send that was leased before and neither finished nor released has `mayBeEnqueued`, now and in later leases.
  /// Sends that cannot be decoded are excluded permanently; `unreadable` is called for each, possibly twice.
  func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend]

  /// Marks sends of the lease as produced.
  /// Sends that another process has leased since stay unchanged.
  func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws

  /// Returns sends of the lease that were not produced.
  /// They can be taken again from `moment` on, or be cancelled unless `mayBeEnqueued`.
  func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws

  /// Holds, pauses or cancels a send, unless it is leased, produced or cancelled.
  ///
  /// Returns the resulting send, with `.fired` if it is leased; nil if it is unknown.
  func control(_ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime) async throws
    -> ScheduledSend?

  /// A send that is or was held; nil if it is unknown.
  /// A produced send is known for a day, a cancelled one for a month.
  func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend?

  /// The held and paused sends after `query.after`, the latest scheduled first, at most
  /// `query.limit`. Of the other members of the query only `hub`, `sender` and `user` apply.
  func waiting(_ query: SendQuery) async throws -> [ScheduledSend]
}

extension ScheduledSendStore {
  /// Stores sends without a limit.
  package func hold(_ sends: [ScheduledSend], at now: UnixTime) async throws {
    _ = try await hold(sends, within: .none, at: now)
  }
}
