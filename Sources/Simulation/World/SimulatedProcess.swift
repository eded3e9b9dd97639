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
  /// How far its wall clock is ahead of the true time, in milliseconds.
  var clockOffset: Int64 = 0
  /// The peers that it cannot reach.
  private(set) var cut: Set<Peer> = []
  private var onDeath: [() -> Void] = []
  private var onThaw: [() -> Void] = []

  /// The systems that a process talks to.
  enum Peer: String, CaseIterable { case kafka, registry, services }

  init(_ name: String, in world: World) {
    self.name = name
    self.world = world
    executor = ProcessExecutor(world)
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
    world.trace.note(world.now, "\(name) dies")
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
    world.trace.note(world.now, "\(name) freezes")
  }

  func thaw() {
    guard isFrozen else { return }
    isFrozen = false
    world.trace.note(world.now, "\(name) thaws")
    executor.thaw()
    let actions = onThaw
    onThaw = []
    for action in actions { action() }
  }

  /// Cuts the network between the process and others for a while.
  func cut(from peer: Peer, for time: World.Time) {
    cut.insert(peer)
    world.trace.note(world.now, "\(name) is cut off from \(peer) for \(time / 1000) ms")
    world.after(time) { [self] in cut.remove(peer) }
  }

  /// Suspends the caller, a task of this process, for a while. Throws `CancellationError` when it is cancelled.
  func pause(_ delay: World.Time) async throws {
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sleeper.begin(continuation)
        after(delay) { sleeper.end(.success(())) }
      }
    } onCancel: {
      sleeper.end(.failure(CancellationError()))
    }
  }
}

/// A suspended task, which either the clock or its cancellation wakes.
private final class Sleeper: Sendable {
  private enum State {
    case created, over
    case asleep(CheckedContinuation<Void, any Error>)
  }

  private let state = Mutex(State.created)

  func begin(_ continuation: CheckedContinuation<Void, any Error>) {
    let isOver = state.withLock { state in
      if case .over = state { return true }
      state = .asleep(continuation)
      return false
    }
    if isOver { continuation.resume(throwing: CancellationError()) }
  }

  func end(_ result: Result<Void, any Error>) {
    let former = state.withLock { state in
      defer { state = .over }
      return state
    }
    if case .asleep(let continuation) = former { continuation.resume(with: result) }
  }
}

/// The wall clock of a process.
extension SimulatedProcess: WallClock {
  func now() -> UnixTime { world.wall + .milliseconds(clockOffset) }
}

/// The clock of a process's delays.
extension SimulatedProcess: DelayClock {
  func uptime() -> Int64 { world.now / 1000 }
  func sleep(for duration: Duration) async throws { try await pause(World.Time(duration)) }
}
