/// Where sends wait for their time. All front ends that share a store take from it, each send one of them at a time.
///
/// Every method may be called from any task and any process at any time; when a change has returned it is durable, and
/// every later call sees it. A method throws `RegistryError`, and then nothing was changed, unless the error says that
/// this is unknown.
package protocol ScheduledSendStore: Sendable {
  /// Holds sends, all or none. One whose id is known in its hub stays as it is, whatever has become of it.
  func hold(_ sends: [ScheduledSend], at now: UnixTime) async throws

  /// The earliest moment at which one can be taken: its time, or when the lease ends under which another front end has
  /// taken it. Nil when none is held.
  func nextDue() async throws -> UnixTime?

  /// Takes those whose time has come, the ones that are due longest first and at most `limit`, for the lease: nobody
  /// else is given them before `end`, unless they are released. One that was taken before and neither finished nor
  /// released `mayBeEnqueued`, and does so from then on. Those of which nothing can be made are set aside for good;
  /// `unreadable` is told each, perhaps twice.
  func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend]

  /// Takes note that sends taken under the lease are in the topic. Those that somebody else has taken since stay as
  /// they are.
  func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws

  /// Gives back sends that were not put into the topic under this lease: they can be taken again from `moment` on, or
  /// be cancelled, but for those that `mayBeEnqueued`.
  func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws

  /// Has a send wait (`.held`, `.paused`) or never go (`.cancelled`), unless it is taken, has gone, or was cancelled.
  /// Returns it as it is from now on, one that is taken as `.fired`; nil when it is not known.
  func steer(_ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime) async throws
    -> ScheduledSend?

  /// A send that is or was held; nil when it is not known. One that has gone is known for a day, one that was cancelled
  /// for a month.
  func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend?

  /// Sends that wait, held or paused: those that were scheduled last first, after `query.after`, at most `query.limit`.
  /// Of the query's other members `sender` and `user` count.
  func waiting(_ query: SendQuery) async throws -> [ScheduledSend]
}
