import FanfareCore
import Synchronization
import Worker

/// A process of the world: a place where tasks run, with clocks of its own, that can freeze and die.
///
/// A process that has died changes nothing in the world any more: its requests are not carried out, and answers do not
/// reach it. Its tasks are cancelled and come to their end unseen. A restarted process is a new one.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedProcess: @unchecked Sendable {
  let name: String
  let world: World
  let executor: ProcessExecutor
  private(set) var isDead = false
  private(set) var isFrozen = false
  /// How far its wall clock is ahead of the true time, in milliseconds, apart from its drift.
  var clockOffset: Int64 = 0 {
    didSet {
      guard clockOffset != oldValue else { return }
      world.note(
        clockOffset == 0 ? .well(name, "clock", "is right") : .trouble(name, "clock", "is \(clockOffset) ms ahead"))
    }
  }
  /// By how much its wall clock is too fast, in millionths, and since when.
  private var drift: (rate: Int64, since: World.Time) = (0, 0)
  /// The peers that it cannot reach.
  private(set) var cut: Set<Peer> = []
  private var links: [Peer: Link] = [:]
  private var onDeath: [() -> Void] = []
  private var onThaw: [() -> Void] = []

  /// The systems that a process talks to, each broker by itself.
  enum Peer: Hashable, CustomStringConvertible {
    case broker(Int), registry, services

    /// All brokers of a cluster.
    static let kafka = (0..<SimulatedCluster.brokers).map { Peer.broker($0) }
    static let all = kafka + [.registry, .services]

    var description: String {
      switch self {
      case .broker(let number): "broker \(number)"
      case .registry: "the registry"
      case .services: "the push services"
      }
    }
  }

  /// The connection to a peer.
  private struct Link {
    /// Until when nothing passes.
    var cutUntil: World.Time = 0
    /// The share of packets that are lost, until a time.
    var loss = (share: 0.0, until: World.Time(0))
    /// Before when nothing arrives, because something is under way.
    var arrival: World.Time = 0
  }

  /// After how long a lost packet is sent again, the first time.
  private static let retransmission: World.Time = .milliseconds(200)

  init(_ name: String, in world: World) {
    self.name = name
    self.world = world
    executor = ProcessExecutor(world)
    world.note(.well(name, "process", "runs"))
  }

  /// Runs a task in the process until it ends; cancelled when the process dies.
  func start(_ body: @escaping @Sendable () async -> Void) {
    let task = Task(executorPreference: executor) { await body() }
    onDeath.append { task.cancel() }
  }

  /// Lets something happen in the process after a delay: not if it has died by then, and not before it thaws.
  func after(_ delay: World.Time, _ action: @escaping () -> Void) {
    world.after(delay) { [self] in
      guard !isDead else { return }
      if isFrozen { onThaw.append(action) } else { action() }
    }
  }

  /// Lets the process die at once.
  func kill() {
    guard !isDead else { return }
    isDead = true
    world.note(.trouble(name, "process", "is dead"))
    for action in onDeath { action() }
    onDeath = []
    onThaw = []
    isFrozen = false
    // Its cancelled tasks come to their end unseen.
    executor.thaw()
  }

  /// Lets nothing happen in the process until `thaw`.
  func freeze() {
    guard !isDead, !isFrozen else { return }
    isFrozen = true
    executor.freeze()
    world.note(.trouble(name, "process", "is frozen"))
  }

  func thaw() {
    guard isFrozen else { return }
    isFrozen = false
    world.note(.well(name, "process", "runs"))
    executor.thaw()
    let actions = onThaw
    onThaw = []
    for action in actions { action() }
  }

  /// Lets its tasks stand still for a while. Its Kafka client, which has threads of its own, goes on.
  func stall(for time: World.Time) {
    guard !isDead, !isFrozen else { return }
    executor.freeze()
    world.note(name, "tasks", "stand still", for: time, then: "run")
    world.after(time) { [self] in goOn() }
  }

  /// Ends a stall.
  func goOn() { if !isFrozen { executor.thaw() } }

  // Network.

  /// Cuts the network between the process and another for a while.
  func cut(from peer: Peer, for time: World.Time) {
    cut.insert(peer)
    links[peer, default: Link()].cutUntil = max(links[peer]?.cutUntil ?? 0, world.now + time)
    world.note(name, "\(peer)", "is cut off", for: time, then: "can be reached")
    world.after(time) { [self] in
      if links[peer]?.cutUntil ?? 0 <= world.now { cut.remove(peer) }
    }
  }

  /// Loses a share of the packets between the process and another for a while. A connection sends them again, later and
  /// later.
  func lose(_ share: Double, to peer: Peer, for time: World.Time) {
    links[peer, default: Link()].loss = (share, world.now + time)
    world.note(name, "link to \(peer)", "loses packets", for: time, then: "works")
  }

  func reaches(_ peer: Peer) -> Bool { !cut.contains(peer) }

  /// How long the next message takes to the peer or back. Messages of a connection arrive in their order.
  func trip(to peer: Peer, _ latency: ClosedRange<World.Time>) -> World.Time {
    var link = links[peer] ?? Link()
    var delay = world.random(latency)
    var pause = Self.retransmission
    while world.now < link.loss.until, world.happens(link.loss.share), pause < .seconds(10) {
      delay += pause
      pause *= 2
    }
    link.arrival = max(link.arrival, world.now + delay)
    links[peer] = link
    return link.arrival - world.now
  }

  // Time.

  /// Lets the wall clock go too fast, or too slowly, from now on.
  func setDrift(_ millionths: Int64) {
    clockOffset += drifted
    drift = (millionths, world.now)
    world.trace.note(world.now, "\(name)'s clock drifts by \(millionths) millionths")
  }

  private var drifted: Int64 { (world.now - drift.since) / 1000 * drift.rate / 1_000_000 }

  /// The moment as a reading of the process's clock of intervals.
  var instant: ContinuousClock.Instant { world.beginning + .microseconds(world.now) }

  /// Suspends the caller, a task of this process, for a while. Throws `CancellationError` when it is cancelled.
  func pause(_ delay: World.Time) async throws {
    try await answer { deliver in after(delay) { deliver(()) } }
  }

  /// Suspends the caller, a task of this process, until `deliver` is called, which counts once. Throws
  /// `CancellationError` when it is cancelled.
  func answer<Answer: Sendable>(_ ask: (_ deliver: @escaping (Answer) -> Void) -> Void) async throws -> Answer {
    let sleeper = Sleeper<Answer>()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sleeper.begin(continuation)
        ask { sleeper.end(.success($0)) }
      }
    } onCancel: {
      sleeper.end(.failure(CancellationError()))
    }
  }
}

/// A suspended task, which either an answer or its cancellation wakes.
private final class Sleeper<Answer: Sendable>: Sendable {
  private enum State {
    case created, over
    case asleep(CheckedContinuation<Answer, any Error>)
  }

  private let state = Mutex(State.created)

  func begin(_ continuation: CheckedContinuation<Answer, any Error>) {
    let isOver = state.withLock { state in
      if case .over = state { return true }
      state = .asleep(continuation)
      return false
    }
    if isOver { continuation.resume(throwing: CancellationError()) }
  }

  func end(_ result: Result<Answer, any Error>) {
    let former = state.withLock { state in
      defer { state = .over }
      return state
    }
    if case .asleep(let continuation) = former { continuation.resume(with: result) }
  }
}

/// The wall clock of a process.
extension SimulatedProcess: WallClock {
  func now() -> UnixTime { world.wall + .milliseconds(clockOffset + drifted) }
}

/// The clock of a process's delays.
extension SimulatedProcess: DelayClock {
  func uptime() -> Int64 { world.now / 1000 }
  func sleep(for duration: Duration) async throws { try await pause(World.Time(duration)) }
}
