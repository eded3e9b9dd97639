/// Where broadcasts are planned, watched and steered: what all workers and front ends of a deployment must know of them
/// at once. Kept beside the registrations. A row may be forgotten a month after its broadcast was planned.
///
/// Every method may be called from any task and any process at any time; when a change has returned it is durable, and
/// every later call sees it. A method throws `RegistryError`, and then nothing was changed, unless the error says that
/// this is unknown.
package protocol BroadcastStore: Sendable {
  /// Fixes how many pages a broadcast has, unless that is fixed already. Returns how many it has, and whether
  /// `announce` was called for it.
  func plan(_ broadcast: BroadcastID, pages: Int, at now: UnixTime) async throws -> (pages: Int, isAnnounced: Bool)

  /// Takes note that every segment of the plan is durable: whoever takes the send again has nothing left to do.
  func announce(_ broadcast: BroadcastID) async throws

  /// Which pages of the range are finished, in ascending order.
  func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int]

  /// Takes note that the pages are finished: never to be begun again. Those that were finished before stay as they are.
  func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws

  /// What is wanted of each of the broadcasts now, in their order; `BroadcastControl.initial` of one that is not known.
  func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl]

  /// Wants something else of a broadcast, planned or not; returns what holds from now on. What was cancelled stays
  /// cancelled, and what its caller has paused is not paused by its failures.
  func steer(_ broadcast: BroadcastID, _ control: BroadcastControl, at now: UnixTime) async throws -> BroadcastControl

  /// Reserves the moment for so many pushes of a broadcast that may make at most `perSecond`: the reservations of all
  /// workers follow one another. Returns the moment, which is not before `now`; what was reserved and not used is not
  /// given back.
  func reserve(_ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime) async throws -> UnixTime

  /// How far a broadcast is; nil when nothing is known of it.
  func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress?
}
