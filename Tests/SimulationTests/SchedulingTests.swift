import FanfareCore
import RDKafka
import Testing

@testable import Simulation

/// The check of schedulers must be one that can find something.
struct SchedulingTests {
  private let world = World(seed: 1, trace: Trace())
  private let registry: SimulatedRegistry
  private let accounts: Accounts
  private let check: Scheduling
  private let (one, other): (SimulatedProcess, SimulatedProcess)
  private let send: SendRequest

  init() throws {
    registry = SimulatedRegistry(in: world)
    accounts = Accounts(in: world, topics: Topics(prefix: "t"), keepsOrder: true)
    check = Scheduling(in: world, registry, accounts)
    (one, other) = (SimulatedProcess("one", in: world), SimulatedProcess("other", in: world))
    send = SendRequest(
      id: SendID(high: 1, low: 1), acceptedAt: world.wall + .seconds(5), audience: .user("bob"),
      content: Content(message: Message(body: "hello")))
    accounts.post(send, after: .seconds(5))
    check.hold(send)
    try registry.change { [send] in $0.schedule.hold([ScheduledSend(send: send, scheduledAt: send.acceptedAt)]) }
  }

  private func lease(to process: SimulatedProcess, for seconds: Int = 30) throws {
    let lease = LeaseID.random(using: &world.chance)
    check.leases[lease] = process.name
    let now = world.wall
    _ = try registry.change { $0.schedule.takeDue(9, for: lease, until: now + .seconds(seconds), at: now) }
  }

  private func produce(by process: SimulatedProcess) {
    _ = check.submitted(ProducerRecord(topic: "t.sends", key: nil, value: send.encoded()), by: process)
  }

  private var found: [String] { accounts.violations.map(\.text) }

  @Test func sendOfItsLeaseAndTimeIsFine() throws {
    world.run(until: .seconds(5))
    try lease(to: one)
    produce(by: one)
    #expect(found.isEmpty)
  }

  @Test func earlySendIsFound() {
    produce(by: one)
    #expect(found.contains { $0.contains("before its time") })
  }

  @Test func sendOfAnotherLeaseIsFound() throws {
    world.run(until: .seconds(5))
    try lease(to: one)
    produce(by: other)
    #expect(found.count == 1 && found.first?.contains("leased by one") == true)
  }

  @Test(arguments: ["", "trouble", "doubt", "registry"])
  func sendThatIsProducedTwiceIsFound(because cause: String) throws {
    world.run(until: .seconds(5))
    try lease(to: one)
    produce(by: one)
    if cause == "trouble" { accounts.troubled("one") }
    if cause == "registry" { accounts.troubled("registry", for: .seconds(30)) }
    if cause == "doubt" { check.failed(send.id) }
    world.run(until: .seconds(50))
    try lease(to: other)
    produce(by: other)
    #expect(found.isEmpty != cause.isEmpty, "\(found)")
  }
}
