import FanfareCore
import Testing

@testable import Simulation

/// The checks of results, broadcasts and rates find what they look for.
struct ResultsTests {
  private let world = World(seed: 1, trace: Trace())
  private let registry: SimulatedRegistry
  private let results: Results
  private let found = Found()
  private let device = RegistrationID(high: 1 << 62, low: 1)
  private let send: SendRequest

  init() {
    registry = SimulatedRegistry(in: world)
    let registered = World.epoch + .seconds(-60)
    registry.register([
      Registration(
        id: device, hub: .default, user: "bob", platform: .apns, handle: "\(device)",
        tags: ["news", Tag.username("bob")], installation: nil, registeredAt: registered, createdAt: registered)
    ])
    results = Results(in: world, registry, Profile(name: "calm")) { [found] in found.texts.append($0) }
    send = SendRequest(
      id: SendID(high: 1, low: 1), acceptedAt: world.wall, audience: .user("bob"),
      content: Content(message: Message(body: "hello")))
    results.posted(send)
  }

  private var push: Push {
    Push(
      ticket: 1, id: PushID(send: send.id, registration: device), handle: "\(device)",
      rendering: RenderedPush(headers: [], body: []), expiresAt: world.wall + .seconds(60))
  }

  private func end(_ outcomes: DeviceResult.Outcome..., as state: StatusRecord.State = .settled) {
    let devices = outcomes.map {
      DeviceResult(registration: device, platform: .apns, outcome: $0, reason: "", status: 200, attempts: 1)
    }
    let status = StatusRecord(
      send: send.id, hub: .default, state: state, sender: nil, audience: send.audience, acceptedAt: send.acceptedAt,
      settledAt: world.wall, devices: devices)
    results.noted(status, isEnd: true, isUndisturbed: true)
  }

  private func deliver(to process: String = "w") {
    results.handedOver(push.id)
    results.answered(push, PushOutcome(.accepted, status: 200), to: process, of: send.id)
  }

  @Test func deliveredPushIsFine() {
    deliver()
    end(.delivered)
    #expect(found.texts.isEmpty)
  }

  @Test func resultWithoutPushIsFound() {
    end(.delivered)
    #expect(found.texts.contains { $0.contains("has not taken it") })
  }

  @Test func forgottenAttemptIsFound() {
    results.handedOver(push.id)
    deliver()
    end(.delivered)
    #expect(found.texts.count == 1 && found.texts.first?.contains("after 1 attempts, and there were 2") == true)
  }

  @Test func missingResultIsFound() {
    end()
    #expect(found.texts.count == 1 && found.texts.first?.contains("no result for 1") == true)
  }

  @Test func secondResultIsFound() {
    deliver()
    end(.delivered, .delivered)
    #expect(found.texts.first?.contains("two results") == true)
  }

  @Test func repetitionOfKnownPushIsFound() {
    deliver()
    #expect(results.isKnown(push, to: "w") { _ in true })
    #expect(!results.isKnown(push, to: "w") { _ in false })
    #expect(!results.isKnown(push, to: "other") { _ in true })
  }

  @Test func pushOfFinishedPageIsFound() throws {
    let id = BroadcastID(hub: .default, send: send.id)
    let now = world.wall
    try registry.change {
      _ = $0.broadcasts[id, default: BroadcastState()].plan(BroadcastPlan(pages: 2), at: now)
      $0.broadcasts[id]?.finish([0], at: now)
    }
    let caller = SimulatedProcess("caller", in: world)
    let operators = Operators(at: caller, registry: registry)
    let pages = FinishedPages(in: world, registry, operators, Profile(name: "calm")) { [found] in found.texts.append($0)
    }
    world.run(until: .seconds(3))
    pages.handedOver(push, of: send, by: "w")
    #expect(found.texts.isEmpty)
    world.run(until: .seconds(7))
    pages.handedOver(push, of: send, by: "w")
    #expect(found.texts.count == 1 && found.texts.first?.contains("finished long before") == true)
    pages.deferred(0, of: send.id)
    pages.handedOver(push, of: send, by: "w")
    #expect(found.texts.count == 1)
  }

  @Test func pageThatIsFinishedTooEarlyIsFound() {
    let operators = Operators(at: SimulatedProcess("caller", in: world), registry: registry)
    let pages = FinishedPages(in: world, registry, operators, Profile(name: "calm")) { [found] in found.texts.append($0)
    }
    pages.noted(0..<2, of: send.id)
    pages.deferred(2, of: send.id)
    pages.finishing([0, 1, 2], of: BroadcastID(hub: .default, send: send.id))
    #expect(found.texts.isEmpty)
    pages.finishing([3], of: BroadcastID(hub: .default, send: send.id))
    #expect(found.texts.first?.contains("no record of it") == true)
  }

  @Test func pushOfHaltedBroadcastIsFound() throws {
    let id = BroadcastID(hub: .default, send: send.id)
    _ = try registry.change {
      $0.broadcasts[id, default: BroadcastState()].plan(BroadcastPlan(pages: 2), at: World.epoch)
    }
    let caller = SimulatedProcess("caller", in: world)
    let operators = Operators(at: caller, registry: registry)
    operators.watch(id)
    operators.cancel()
    let pages = FinishedPages(in: world, registry, operators, Profile(name: "calm")) { [found] in found.texts.append($0)
    }
    world.run(until: .seconds(8))
    pages.handedOver(push, of: send, by: "w")
    #expect(found.texts.count == 1 && found.texts.first?.contains("after its halt") == true)
  }

  /// The violations. `@unchecked Sendable`: used on one thread.
  private final class Found: @unchecked Sendable {
    var texts: [String] = []
  }
}
