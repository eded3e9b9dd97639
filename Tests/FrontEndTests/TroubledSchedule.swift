import FanfareCore
import Synchronization

/// A store of scheduled sends that is out of reach, or whose sends others are taking, when the test says so.
final class TroubledSchedule: ScheduledSendStore {
  struct Unreachable: Error {}

  /// What is the matter with it.
  enum Trouble {
    case none, cannotBeToldOf, takenByOthers
  }

  private let store: any ScheduledSendStore
  private let whenNotTold: @Sendable () async -> Void
  private let held = Mutex(Trouble.none)

  /// `whenNotTold` happens when the store cannot be told what was done.
  init(over store: any ScheduledSendStore, whenNotTold: @escaping @Sendable () async -> Void = {}) {
    self.store = store
    self.whenNotTold = whenNotTold
  }

  var trouble: Trouble {
    get { held.withLock { $0 } }
    set { held.withLock { $0 = newValue } }
  }

  func hold(_ sends: [ScheduledSend], at now: UnixTime) async throws { try await store.hold(sends, at: now) }

  func nextDue() async throws -> UnixTime? { try await store.nextDue() }

  func takeDue(
    _ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime,
    unreadable: @escaping @Sendable (HubName, SendID) -> Void
  ) async throws -> [ScheduledSend] {
    trouble == .takenByOthers
      ? [] : try await store.takeDue(limit, for: lease, until: end, at: now, unreadable: unreadable)
  }

  func finish(_ sends: [ScheduledSend], of lease: LeaseID, at now: UnixTime) async throws {
    try await requireReach()
    try await store.finish(sends, of: lease, at: now)
  }

  func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) async throws {
    try await requireReach()
    try await store.release(sends, of: lease, until: moment)
  }

  private func requireReach() async throws {
    guard trouble == .cannotBeToldOf else { return }
    await whenNotTold()
    throw Unreachable()
  }

  func steer(_ send: SendID, hub: HubName, to state: ScheduledSend.State, at now: UnixTime) async throws
    -> ScheduledSend?
  {
    try await store.steer(send, hub: hub, to: state, at: now)
  }

  func scheduled(_ send: SendID, hub: HubName) async throws -> ScheduledSend? {
    try await store.scheduled(send, hub: hub)
  }

  func waiting(_ query: SendQuery) async throws -> [ScheduledSend] { try await store.waiting(query) }
}
