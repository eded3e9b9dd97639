import FanfareCore
import PushSimulator
import Support
import Testing

@testable import PushServices

/// The senders and the push simulator do what the simulation's model of a push service does.
@Suite(.timeLimit(.minutes(5))) struct SenderConformanceTests {
  /// The push simulator, and a sender to it.
  private struct Service: PushServiceUnderTest {
    let simulator: PushSimulator
    let service: SimulatedService
    let sender: any PushSender
    let handle: String

    func push(_ ticket: UInt64) throws -> Push {
      Push(
        ticket: ticket, id: .random(), handle: handle, rendering: try sender.render(SimulatorTests.portable),
        expiresAt: SystemWallClock().now() + .seconds(60))
    }

    func order(_ trouble: PushServiceConformance.Trouble) {
      simulator.faults.removeAll()
      let isAPNs = service == .apns
      let action: Fault.Action? =
        switch trouble {
        case .none: nil
        case .gone: isAPNs ? .answer(status: 410) : .answer(status: 404, reason: "UNREGISTERED")
        case .throttled(let seconds): .answer(status: 429, retryAfter: seconds)
        case .unavailable: .answer(status: 503)
        case .failing: .answer(status: 500)
        case .refused: .answer(status: 403, reason: isAPNs ? "InvalidProviderToken" : "PERMISSION_DENIED")
        case .expired:
          isAPNs
            ? .answer(status: 403, reason: "ExpiredProviderToken") : .answer(status: 401, reason: "UNAUTHENTICATED")
        case .goAway: .goAway
        case .connectionLost: .acceptAndDrop
        case .silence: .silence
        }
      if let action { simulator.faults.add(Fault(service, action)) }
    }
  }

  private static let token = String(repeating: "ab", count: 32)

  @Test func apnsDoesWhatTheModelDoes() async throws {
    try await SimulatorTests.running { simulator, endpoints in
      let sender = try SimulatorTests.apns(simulator.credentials, endpoints)
      try await Outcomes.running(sender) { sender in
        let service = Service(simulator: simulator, service: .apns, sender: sender, handle: Self.token)
        try await PushServiceConformance(service).run()
      }
    }
  }

  @Test func fcmDoesWhatTheModelDoes() async throws {
    try await SimulatorTests.running { simulator, endpoints in
      try await Outcomes.running(SimulatorTests.fcm(simulator.credentials, endpoints)) { sender in
        let service = Service(simulator: simulator, service: .fcm, sender: sender, handle: "a-token")
        try await PushServiceConformance(service).run()
      }
    }
  }

  @Test func silenceIsTheModels() async throws {
    try await SimulatorTests.running { simulator, endpoints in
      let sender = try SimulatorTests.apns(simulator.credentials, endpoints) { $0.requestTimeout = Patience.silence }
      try await Outcomes.running(sender) { sender in
        let service = Service(simulator: simulator, service: .apns, sender: sender, handle: Self.token)
        try await PushServiceConformance(service).meetSilence()
      }
    }
  }
}
