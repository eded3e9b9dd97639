import FanfareCore
import Support
import Testing
import Worker

@testable import Simulation

/// The model of a push service does what the product's senders and the push simulator do
/// (`PushServicesTests.SenderConformanceTests`).
struct PushServiceModelTests {
  private struct Service: PushServiceUnderTest {
    let model: PushServiceModel
    let sender: any PushSender

    func push(_ ticket: UInt64) -> Push {
      Push(
        ticket: ticket, id: PushID(high: 1, low: ticket), handle: "h",
        rendering: RenderedPush(headers: [], body: Array("no send".utf8)), expiresAt: model.world.wall + .seconds(60))
    }

    func order(_ trouble: PushServiceConformance.Trouble) {
      model.become(.healthy)
      switch trouble {
      case .none: break
      case .gone: model.become(.answering(.gone(since: model.world.wall)))
      case .throttled(let seconds): model.become(.answering(.throttled(retryAfter: seconds)))
      case .unavailable: model.become(.answering(.unavailable))
      case .failing: model.become(.answering(.failing))
      case .refused: model.become(.answering(.refused))
      case .expired: model.expireCredentials()
      // While the push is on its way.
      case .goAway: model.world.after(1) { [model] in model.closeConnections() }
      case .connectionLost: model.become(.answering(.connectionLost))
      case .silence: model.become(.answering(.silence))
      }
    }
  }

  @Test(arguments: [Platform.apns, .fcm]) func conforms(_ platform: Platform) throws {
    let world = World(seed: 1, trace: Trace())
    let accounts = Accounts(in: world, topics: Topics(prefix: "t"), keepsOrder: true)
    let promises = Promises(in: world, Profile(name: "test"), limits: WorkerConfiguration()) { accounts.violate($0) }
    try runInWorld(world) { process in
      let model = PushServiceModel(platform, in: world)
      let connection = ServiceConnection(of: process, to: model, accounts, promises)
      let conformance = PushServiceConformance(Service(model: model, sender: connection))
      try await conformance.run()
      try await conformance.meetSilence()
    }
  }
}
