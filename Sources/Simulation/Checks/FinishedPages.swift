import FanfareCore

/// Whether workers and the store agree about broadcasts: finished pages have their records in the log and are not
/// pushed again, and a broadcast that is paused or cancelled gets no further pushes.
///
/// `@unchecked Sendable`: see `World`.
final class FinishedPages: @unchecked Sendable {
  /// The longest time until all workers know of a pause.
  static let notice: World.Time = .seconds(5)

  private let world: World
  private let registry: SimulatedRegistry
  /// Give the commands; nil where workers may not learn of them in time.
  private let operators: Operators?
  private let violate: (String) -> Void
  /// The pages that are pushed after their end: those of which a part was deferred, and those that a process ended
  /// whose partition another one owned already.
  private var repeatable: [SendID: Set<Int>] = [:]
  /// The pages of which the log has a status record or a retry record.
  private var recorded: [SendID: Set<Int>] = [:]
  private var pushed: Set<PushID> = []

  init(
    in world: World, _ registry: SimulatedRegistry, _ operators: Operators, _ profile: Profile,
    violate: @escaping (String) -> Void
  ) {
    (self.world, self.registry, self.violate) = (world, registry, violate)
    self.operators = profile.keepsControls ? operators : nil
  }

  func deferred(_ part: Int, of send: SendID) {
    repeatable[send, default: []].insert(part)
    recorded[send, default: []].insert(part)
  }

  /// The parts of a send have a status record. `mayRepeat`: of a process in trouble.
  func noted(_ parts: Range<Int>, of send: SendID, mayRepeat: Bool = false) {
    recorded[send, default: []].formUnion(parts)
    if mayRepeat { repeatable[send, default: []].formUnion(parts) }
  }

  /// A worker reports pages as finished.
  func finishing(_ pages: [Int], of broadcast: BroadcastID) {
    for page in pages where recorded[broadcast.send]?.contains(page) != true {
      violate("page \(page) of \(broadcast.send) is reported as finished, and the log has no record of it")
    }
  }

  /// A process that is not in trouble hands over a push of a broadcast.
  func handedOver(_ push: Push, of send: SendRequest, by process: String) {
    let id = BroadcastID(hub: send.hub, send: send.id)
    guard let state = registry.state.broadcasts[id], let pages = state.plan?.pages else { return }
    let isFirst = pushed.insert(push.id).inserted
    if isFirst, let haltedAt = operators?.halts[id], world.now > haltedAt + Self.notice {
      violate("\(push.id) of \(send.id) is pushed by \(process) \((world.now - haltedAt) / 1_000_000) s after its halt")
    }
    // The handle of a simulated device is its registration's id, until its app gets a new one.
    guard let registration = RegistrationID(push.handle),
      push.id == PushID(send: send.id, registration: registration)
    else { return }
    // The moments are of processes whose clocks may be wrong by seconds.
    for (page, end) in state.finished where world.wall > end + .seconds(6) {
      guard repeatable[send.id]?.contains(page) != true, RegistrationSlice.page(page, of: pages).contains(registration)
      else { continue }
      violate("\(push.id) of \(send.id) is pushed by \(process), and its page \(page) was finished long before")
    }
  }
}
