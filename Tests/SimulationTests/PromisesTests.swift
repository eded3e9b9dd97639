import FanfareCore
import Testing
import Worker

@testable import Simulation

/// A check that finds nothing must be one that can find something.
final class PromisesTests {
  private let world = World(seed: 1, trace: Trace())
  private let service = Promises.Service(hub: .default, platform: .fcm)
  private var found: [String] = []
  private lazy var promises = promises(limits: WorkerConfiguration())

  private func promises(limits: WorkerConfiguration, _ change: (inout Profile) -> Void = { _ in }) -> Promises {
    Promises(in: world, Profile("test", change), limits: limits) { [unowned self] in found.append($0) }
  }

  private func send(to audience: Audience = .user("ann"), maximumPerSecond: Int? = nil) -> SendRequest {
    SendRequest(
      id: SendID(high: 1, low: 1), acceptedAt: world.wall, audience: audience,
      content: Content(message: Message(body: "hello")), maximumPerSecond: maximumPerSecond)
  }

  private func push(_ send: SendRequest) -> Push {
    Push(
      ticket: 1, id: PushID(send: send.id, registration: RegistrationID(high: 1, low: 1)), handle: "h",
      rendering: RenderedPush(headers: [], body: []), expiresAt: world.wall + .seconds(60))
  }

  private func lookUp(_ audience: Audience, askedAt: World.Time) {
    let target = Target(
      registration: RegistrationID(high: 1, low: 1), platform: .fcm, handle: "h", registeredAt: world.wall)
    promises.found(
      [AudiencePage(targets: [target], examined: 1, last: nil)],
      of: [AudienceQuery(hub: .default, audience: audience, platforms: .all)], by: "w", askedAt: askedAt)
  }

  private func handOver(_ send: SendRequest, times: Int = 1) {
    for _ in 0..<times { promises.handedOver(push(send), of: send, by: "w", to: service) }
  }

  private func answer(_ send: SendRequest, _ outcome: PushOutcome) {
    promises.answered(push(send), outcome, by: "w", from: service)
  }

  @Test func pushWithoutLookUpIsFound() {
    lookUp(.user("ben"), askedAt: world.now)
    handOver(send())
    #expect(found.count == 1 && found.first?.contains("was not looked up") == true)
  }

  @Test func pushLongAfterItsLookUpIsFound() {
    lookUp(.user("ann"), askedAt: 0)
    world.run(until: .milliseconds(250))
    handOver(send())
    #expect(found.isEmpty)
    world.run(until: .milliseconds(260))
    handOver(send())
    #expect(found.count == 1 && found.first?.contains("looked up 260 ms ago") == true)
    // Looked up again, by a registry that takes longer than the window.
    world.run(until: .seconds(9))
    lookUp(.registration(RegistrationID(high: 1, low: 1)), askedAt: .seconds(8))
    handOver(send())
    #expect(found.count == 1)
  }

  @Test func broadcastHasMoreTime() {
    lookUp(.tag("news"), askedAt: 0)
    world.run(until: .seconds(4))
    handOver(send(to: .tag("news")))
    #expect(found.isEmpty)
    world.run(until: .milliseconds(4_010))
    handOver(send(to: .tag("news")))
    #expect(found.count == 1)
  }

  @Test func exceededQuotaIsFound() {
    var limits = WorkerConfiguration()
    limits.pushesPerMinute = [.default: [.fcm: 3]]
    promises = promises(limits: limits)
    lookUp(.user("ann"), askedAt: 0)
    handOver(send(), times: 3)
    #expect(found.isEmpty)
    handOver(send())
    #expect(found == ["fcm of default gets more than 3 pushes in a minute"])
    world.run(until: .seconds(60))
    lookUp(.user("ann"), askedAt: world.now)
    handOver(send())
    #expect(found.count == 1)
  }

  @Test func exceededRateIsFound() {
    let send = send(to: .tag("news"), maximumPerSecond: 1)
    lookUp(.tag("news"), askedAt: 0)
    handOver(send, times: 11)
    #expect(found.isEmpty)
    handOver(send)
    #expect(found.count == 1 && found.first?.contains("more than 1 pushes a second") == true)
  }

  @Test func tooManyPushesInFlightAreFound() {
    var limits = WorkerConfiguration()
    limits.limits.maximumPushesPerSender = 1
    promises = promises(limits: limits)
    lookUp(.user("ann"), askedAt: 0)
    handOver(send())
    answer(send(), PushOutcome(.accepted, status: 200))
    handOver(send())
    #expect(found.isEmpty)
    handOver(send())
    #expect(found.count == 1 && found.first?.contains("2 pushes in flight") == true)
  }

  @Test func deadDeviceThatStaysRegisteredIsFound() {
    lookUp(.user("ann"), askedAt: 0)
    handOver(send())
    answer(send(), PushOutcome(.deviceGone, status: 410))
    world.run(until: .seconds(11))
    lookUp(.user("ann"), askedAt: world.now)
    handOver(send())
    #expect(found.count == 1 && found.first?.contains("called dead long ago") == true)
  }

  @Test func unregisteredLiveDeviceIsFound() {
    promises.dropped([
      DeadDevice(
        hub: .default, registration: RegistrationID(high: 1, low: 1), handle: "h", since: nil, reason: "Unregistered")
    ])
    #expect(found.count == 1 && found.first?.contains("is alive") == true)
  }

  @Test func recordsBeyondTheLimitAreFound() {
    promises.held(10_000, by: "w")
    #expect(found.isEmpty)
    promises.held(10_001, by: "w")
    #expect(found == ["w holds 10001 records"])
  }
}
