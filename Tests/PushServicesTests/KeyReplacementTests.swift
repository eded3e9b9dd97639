import FanfareCore
import Foundation
import Logging
import NIOPosix
import PushSimulator
import Testing

@testable import PushServices

/// A sender gets a new key while it runs: the service refuses the old one, and no restart is needed.
@Suite struct KeyReplacementTests {
  @Test func newAPNsKeyIsUsedWithoutRestart() async throws {
    try await SimulatorTests.running { simulator, endpoints in
      try await Outcomes.running(SimulatorTests.apns(simulator.credentials, endpoints)) { sender in
        let device = String(repeating: "ab", count: 32)
        func push() async throws -> [PushOutcome] {
          try await SimulatorTests.outcomes(sender, SimulatorTests.portable, to: [device])
        }
        expectEqual(try await push(), [PushOutcome(.accepted, status: 200)])
        let old = simulator.credentials.apns
        let files = try #require(try await simulator.replaceKey(of: .apns))
        let new = try SimulatorCredentials.APNsApp { files[$0] ?? Data() }
        expectEqual(try await push(), [PushOutcome(.configurationError, reason: "InvalidProviderToken", status: 403)])
        expectEqual(try sender.use(privateKey: old.privateKeyPEM, keyID: old.keyID), false)
        expectEqual(try sender.use(privateKey: new.privateKeyPEM, keyID: new.keyID), true)
        expectEqual(try await push(), [PushOutcome(.accepted, status: 200)])
        #expect(sender.readinessProblem == nil)
        // An invalid key changes nothing.
        #expect(throws: PushConfigurationError.self) { try sender.use(privateKey: "no key", keyID: new.keyID) }
        #expect(throws: PushConfigurationError.self) { try sender.use(privateKey: new.privateKeyPEM, keyID: "?") }
        expectEqual(try await push(), [PushOutcome(.accepted, status: 200)])
      }
    }
  }

  @Test func newServiceAccountKeyIsUsedWithoutRestart() async throws {
    try await SimulatorTests.running { simulator, endpoints in
      try await Outcomes.running(SimulatorTests.fcm(simulator.credentials, endpoints)) { sender in
        func push() async throws -> PushOutcome {
          try await SimulatorTests.outcomes(sender, SimulatorTests.portable, to: ["device"])[0]
        }
        expectEqual(try await push(), PushOutcome(.accepted, status: 200))
        let files = try #require(try await simulator.replaceKey(of: .fcm))
        let new = try SimulatorCredentials.GoogleServiceAccount { files[$0] ?? Data() }
        expectEqual(try await push().verdict, .reauthenticate)
        let key = try SimulatorTests.account(new)
        expectEqual(try sender.use(key), true)
        expectEqual(try sender.use(key), false)
        expectEqual(try await push(), PushOutcome(.accepted, status: 200))
        var foreign = new
        foreign.projectID = "another"
        let stranger = try SimulatorTests.account(foreign)
        #expect(throws: PushConfigurationError.self) { try sender.use(stranger) }
      }
    }
  }

  @Test func newWNSSecretIsUsedWithoutRestart() async throws {
    try await SimulatorTests.running { simulator, endpoints in
      var mistaken = simulator.credentials
      mistaken.windows.packageSecret = "mistaken"
      try await Outcomes.running(SimulatorTests.wns(mistaken, endpoints, isStore: true)) { sender in
        let device = "https://cloud.notify.windows.com/?token=a"
        expectEqual(
          try await SimulatorTests.outcomes(sender, SimulatorTests.portable, to: [device]).map(\.verdict),
          [.configurationError])
        expectEqual(try sender.use(secret: "mistaken"), false)
        expectEqual(try sender.use(secret: simulator.credentials.windows.packageSecret), true)
        expectEqual(
          try await SimulatorTests.outcomes(sender, SimulatorTests.portable, to: [device]).map(\.verdict), [.accepted])
        #expect(throws: PushConfigurationError.self) { try sender.use(secret: "") }
      }
    }
  }
}
