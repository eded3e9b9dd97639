import FanfareCore
import RDKafka

/// The schedulers of a deployment's front ends, and a caller that schedules sends.
///
/// `@unchecked Sendable`: see `World`.
final class Schedulers: @unchecked Sendable {
  private let profile: Profile
  private let topics: Topics
  private let caller: SimulatedProcess
  private let cluster: SimulatedCluster
  private let registry: SimulatedRegistry
  private let connection: RegistryConnection
  private let accounts: Accounts
  private let check: Scheduling
  private var processes: [SchedulerProcess] = []
  private var started = 0

  init(
    _ profile: Profile, topics: Topics, caller: SimulatedProcess, cluster: SimulatedCluster,
    registry: SimulatedRegistry, accounts: Accounts
  ) {
    (self.profile, self.topics, self.caller, self.cluster) = (profile, topics, caller, cluster)
    (self.registry, self.accounts) = (registry, accounts)
    connection = RegistryConnection(of: caller, to: registry)
    check = Scheduling(in: cluster.world, registry, accounts)
  }

  var checks: Int { check.checks }
  var isOver: Bool { processes.allSatisfy { $0.isOver || $0.process.isDead } }

  func start() { for _ in 0..<profile.schedulers { startOne() } }

  private func startOne() {
    started += 1
    processes.append(
      SchedulerProcess("scheduler\(started)", cluster: cluster, registry: registry, topics: topics, check: check))
  }

  /// A caller schedules a send, and repeats its request while it is not answered.
  func schedule(_ send: SendRequest) {
    let now = caller.now()
    accounts.post(send, after: World.Time(send.acceptedAt - now))
    check.hold(send)
    caller.insist { [connection, accounts] in
      _ = try await connection.hold([ScheduledSend(send: send, scheduledAt: now)], within: .none, at: now)
      accounts.accept(send.id)
    }
  }

  /// One of them dies, freezes, is cut off, or its clock steps.
  func disturb(for length: World.Time) {
    let world = cluster.world
    guard let one = world.element(of: processes.filter { !$0.process.isDead && !$0.isOver }) else { return }
    accounts.troubled(one.process.name, for: length)
    switch world.random(0...4) {
    case 0:
      one.process.kill()
      world.after(length / 4) { [self] in startOne() }
    case 1:
      one.process.freeze()
      world.after(length) { one.process.thaw() }
    case 2: for peer in SimulatedProcess.Peer.kafka { one.process.cut(from: peer, for: length) }
    case 3: one.process.cut(from: .registry, for: length)
    default: one.process.clockOffset = world.random(-2_000...2_000)
    }
  }

  func thaw() { for one in processes { one.process.thaw() } }
  func stop() { for one in processes where !one.process.isDead { one.stop() } }
}
