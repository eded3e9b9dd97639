import FanfareCore
import Foundation
import Logging
import NIOPosix
import PushSimulator
import Support
import Testing

@testable import PushServices

/// The senders against the simulator, which was written independently from the services' documentation.
@Suite struct SimulatorTests {
  private static let credentials = Result { try SimulatorCredentials.generate() }

  static func running(
    clock: any WallClock = SystemWallClock(),
    _ body: @escaping @Sendable (PushSimulator, SimulatorEndpoints) async throws -> Void
  ) async throws {
    var configuration = SimulatorConfiguration()
    configuration.credentials = try Self.credentials.get()
    configuration.clock = clock
    let simulator = try PushSimulator(
      configuration: configuration, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      logger: Logger(label: "simulator"))
    try await simulator.withRunning { try await body(simulator, $0) }
  }

  static func apns(
    _ credentials: SimulatorCredentials, _ endpoints: SimulatorEndpoints, clock: any WallClock = SystemWallClock(),
    configure: (inout APNsConfiguration) -> Void = { _ in }
  ) throws -> APNsSender {
    let app = credentials.apns
    var configuration = APNsConfiguration(
      keyID: app.keyID, teamID: app.teamID, privateKey: app.privateKeyPEM, topic: app.bundleIDs[0])
    configuration.host = "localhost"
    configuration.port = endpoints.port(of: .apns)
    configuration.trustRoots = credentials.authorityPEM
    configure(&configuration)
    return try APNsSender(configuration, SenderResources(clock: clock, logger: Logger(label: "test")))
  }

  static func account(
    _ account: SimulatorCredentials.GoogleServiceAccount, hasKeyID: Bool = true
  ) throws -> ServiceAccountKey {
    var members = [
      "type": "service_account", "project_id": account.projectID, "private_key": account.privateKeyPEM,
      "client_email": account.clientEmail, "token_uri": "https://oauth2.googleapis.com/token",
    ]
    if hasKeyID { members["private_key_id"] = account.privateKeyID }
    let file = try JSONSerialization.data(withJSONObject: members)
    return try ServiceAccountKey(json: Array(file))
  }

  static func fcm(_ credentials: SimulatorCredentials, _ endpoints: SimulatorEndpoints) throws -> FCMSender {
    var configuration = FCMConfiguration(serviceAccount: try account(credentials.google))
    configuration.host = "localhost"
    configuration.port = endpoints.port(of: .fcm)
    configuration.tokenEndpoint = "https://localhost:\(endpoints.httpsPort)/token"
    configuration.trustRoots = credentials.authorityPEM
    return try FCMSender(configuration, SenderResources(logger: Logger(label: "test")))
  }

  static func wns(
    _ credentials: SimulatorCredentials, _ endpoints: SimulatorEndpoints, isStore: Bool
  ) throws -> WNSSender {
    let app = credentials.windows
    var configuration = WNSConfiguration(
      flow: isStore
        ? .store(packageSID: app.packageSID, secret: app.packageSecret)
        : .entra(tenant: app.tenantID, applicationID: app.applicationID, secret: app.applicationSecret))
    let path = isStore ? "accesstoken.srf" : "\(app.tenantID)/oauth2/v2.0/token"
    configuration.tokenEndpoint = "https://localhost:\(endpoints.httpsPort)/\(path)"
    configuration.connectTo = ("localhost", endpoints.httpsPort)
    configuration.trustRoots = credentials.authorityPEM
    return try WNSSender(configuration, SenderResources(logger: Logger(label: "test")))
  }

  /// Pushes of one message to devices, in the order of the handles.
  static func outcomes(
    _ sender: any PushSender, _ send: SendRequest, to handles: [String], at now: UnixTime = SystemWallClock().now()
  ) async throws -> [PushOutcome] {
    let rendering = try sender.render(send)
    let expiry = now + .seconds(60)
    let pushes = handles.enumerated().map { index, handle in
      Push(
        ticket: UInt64(index), id: PushID(send: send.id, registration: RegistrationID.random()), handle: handle,
        rendering: rendering, expiresAt: expiry)
    }
    return try await Outcomes.submit(pushes, to: sender)
  }

  static let portable = Fixtures.send(
    Message(title: "T", body: "quotes \" < & 👋\n", data: ["k": "v"], badge: 3, sound: "default"), collapseKey: "score")

  @Test func simulatedAPNsAcceptsOurRequests() async throws {
    try await Self.running { simulator, endpoints in
      try await Outcomes.running(Self.apns(simulator.credentials, endpoints)) { sender in
        let device = String(repeating: "ab", count: 32)
        let sends = [
          Self.portable, Fixtures.send(Message(data: ["k": "v"])), Fixtures.send(Message(badge: 0), priority: .normal),
          Fixtures.send(Content.of(apns: Array(#"{"aps":{"content-available":1},"secureId":"x"}"#.utf8))),
        ]
        for send in sends {
          expectEqual(try await Self.outcomes(sender, send, to: [device]), [PushOutcome(.accepted, status: 200)])
        }
        #expect(simulator.store.notifications(.apns, device).count == sends.count)
        let parsed = try Fixtures.object(simulator.store.notifications(.apns, device)[0].payload)
        #expect(member(parsed, "aps", "alert", "body") as? String == "quotes \" < & 👋\n")
        let faults = ["dead00", "baad00", "042900", "050300"].map { $0 + device.dropFirst(6) }
        let outcomes = try await Self.outcomes(sender, Self.portable, to: faults)
        #expect(
          outcomes == [
            PushOutcome(
              .deviceGone, reason: "Unregistered", status: 410, since: UnixTime(milliseconds: 1_700_000_000_123)),
            PushOutcome(.deviceGone, reason: "BadDeviceToken", status: 400),
            PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(1)),
            PushOutcome(.retryLater, reason: "ServiceUnavailable", status: 503, retryAfter: .seconds(1)),
          ])
      }
    }
  }

  @Test func expirationOfTheCallerIsLimitedByTheSend() async throws {
    try await Self.running { simulator, endpoints in
      try await Outcomes.running(Self.apns(simulator.credentials, endpoints)) { sender in
        let (device, now) = (String(repeating: "ab", count: 32), SystemWallClock().now())
        let soon = String(now.seconds + 5)
        for own in ["4000000000", soon, "0"] {
          let content = Content.of(apns: Array(#"{"aps":{"alert":"a"}}"#.utf8), headers: ["apns-expiration": own])
          let send = Fixtures.send(content)
          expectEqual(try await Self.outcomes(sender, send, to: [device], at: now).map(\.verdict), [.accepted])
        }
        let sent = simulator.store.notifications(.apns, device).map { notification in
          notification.headers.first { $0.name == "apns-expiration" }?.value
        }
        #expect(Set(sent) == [String((now + .seconds(60)).seconds), soon, "0"])
      }
    }
  }

  @Test func dryRunIsNotReportedAsDelivered() async throws {
    try await Self.running { simulator, endpoints in
      try await Outcomes.running(Self.fcm(simulator.credentials, endpoints)) { sender in
        let content = Content.of(fcm: Array(#"{"dry_run":true,"data":{"k":"v"}}"#.utf8))
        expectEqual(
          try await Self.outcomes(sender, Fixtures.send(content), to: ["device-1"]),
          [PushOutcome(.rejected, reason: "DryRun", status: 200)])
        #expect(simulator.store.notifications(.fcm, "device-1").isEmpty)
      }
    }
  }

  /// A connection is unusable after a token on it has expired.
  @Test func expiredTokenIsReplacedOnAnotherConnection() async throws {
    let clock = ManualClock()
    try await Self.running(clock: clock) { simulator, endpoints in
      try await Outcomes.running(Self.apns(simulator.credentials, endpoints, clock: clock)) { sender in
        func push() async throws -> [PushOutcome.Verdict] {
          try await Self.outcomes(sender, Self.portable, to: ["ab"], at: clock.now()).map(\.verdict)
        }
        expectEqual(try await push(), [.accepted])
        simulator.expireTokens(of: .apns)
        clock.advance(by: .seconds(21 * 60))
        expectEqual(try await push(), [.reauthenticate])
        expectEqual(try await push(), [.accepted])
      }
    }
  }

  /// Even if a push was accepted a moment ago, when single refusals are not believed.
  @Test func expiredTokenIsReplacedAtOnceUnderLoad() async throws {
    let clock = ManualClock()
    try await Self.running(clock: clock) { simulator, endpoints in
      try await Outcomes.running(Self.apns(simulator.credentials, endpoints, clock: clock)) { sender in
        func push() async throws -> [PushOutcome.Verdict] {
          try await Self.outcomes(sender, Self.portable, to: ["ab"], at: clock.now()).map(\.verdict)
        }
        expectEqual(try await push(), [.accepted])
        clock.advance(by: .seconds(21 * 60))
        expectEqual(try await push(), [.accepted])
        simulator.expireTokens(of: .apns)
        expectEqual(try await push(), [.reauthenticate])
        expectEqual(try await push(), [.accepted])
      }
    }
  }

  /// The replacement of an expired token uses other connections, however recently those were renewed.
  @Test func tokenAfterAnExpiredOneNeverUsesItsConnection() async throws {
    let clock = ManualClock()
    try await Self.running(clock: clock) { simulator, endpoints in
      try await Outcomes.running(Self.apns(simulator.credentials, endpoints, clock: clock)) { sender in
        func push() async throws -> [PushOutcome.Verdict] {
          try await Self.outcomes(sender, Self.portable, to: ["ab"], at: clock.now()).map(\.verdict)
        }
        expectEqual(try await push(), [.accepted])
        simulator.expireTokens(of: .apns)
        // Too young to be replaced, which still is a reason for other connections.
        clock.advance(by: .seconds(20 * 60 - 5))
        expectEqual(try await push(), [.reauthenticate])
        clock.advance(by: .seconds(10))
        expectEqual(try await push(), [.reauthenticate])
        expectEqual(try await push(), [.accepted])
      }
    }
  }

  @Test func simulatedFCMAcceptsOurRequests() async throws {
    try await Self.running { simulator, endpoints in
      try await Outcomes.running(Self.fcm(simulator.credentials, endpoints)) { sender in
        let device = "device:" + String(repeating: "A", count: 140)
        let legacy =
          #"{"priority":"high","time_to_live":60,"collapse_key":"c","data":{"n":1},"notification":{"title":"t","icon":"i","badge":2}}"#
        let shown =
          ##"{"priority":"high","notification":{"title_loc_key":"t","title_loc_args":"[\"a\"]","body_loc_key":"b","##
          + ##""color":"#aabbcc","android_channel_id":"c","tag":"t","click_action":"x","sound":"s"}}"##
        let silent = #"{"priority":"high","content_available":true,"data":{"n":1}}"#
        let sends = [
          Fixtures.send(Content.of(fcm: Array(shown.utf8))), Fixtures.send(Content.of(fcm: Array(silent.utf8))),
          Fixtures.send(Content.of(fcm: Array(#"{"android_v2":{"background_sync":{}},"data":{"k":"v"}}"#.utf8))),
          Self.portable, Fixtures.send(Message(data: ["message": "x"])), Fixtures.send(Message(badge: 1)),
          Fixtures.send(Content.of(fcm: Array(legacy.utf8))),
          Fixtures.send(Content.of(fcm: Array(#"{"data":{"message":"x"}}"#.utf8))),
          Fixtures.send(Content.of(fcm: Array(#"{"android":{"ttl":"3s"},"apns":{"payload":{"aps":{}}}}"#.utf8))),
        ]
        for send in sends {
          expectEqual(try await Self.outcomes(sender, send, to: [device]), [PushOutcome(.accepted, status: 200)])
        }
        let arrived = simulator.store.notifications(.fcm, device)
        #expect(arrived.count == sends.count)
        #expect(arrived.allSatisfy { $0.pushID != nil })
        let faults = ["dead-", "invalid-", "mismatch-", "quota-", "gateway-"].map { $0 + device }
        let outcomes = try await Self.outcomes(sender, Self.portable, to: faults)
        #expect(outcomes.map(\.verdict) == [.deviceGone, .deviceGone, .deviceGone, .retryLater, .retryLater])
        simulator.expireTokens(of: .fcm)
        expectEqual(try await Self.outcomes(sender, Self.portable, to: [device]).map(\.status), [401])
      }
    }
  }

  /// As one whose key a client of Azure replaced: it does not know the id.
  @Test func serviceAccountNeedsNoIDOfItsKey() async throws {
    try await Self.running { simulator, endpoints in
      try await Outcomes.running(Self.fcm(simulator.credentials, endpoints)) { sender in
        let account = try Self.account(simulator.credentials.google, hasKeyID: false)
        #expect(try sender.use(account) && !sender.use(account))
        var foreign = simulator.credentials.google
        foreign.projectID = "another"
        let stranger = try Self.account(foreign)
        #expect(throws: PushConfigurationError.self) { try sender.use(stranger) }
        let outcomes = try await Self.outcomes(sender, Self.portable, to: ["token-1"])
        #expect(outcomes == [PushOutcome(.accepted, status: 200)])
      }
    }
  }

  @Test(arguments: [true, false]) func simulatedWNSAcceptsOurRequests(isStore: Bool) async throws {
    try await Self.running { simulator, endpoints in
      try await Outcomes.running(Self.wns(simulator.credentials, endpoints, isStore: isStore)) { sender in
        let device = "https://cloud.notify.windows.com/?token=AwY%2bx%2f%3d"
        let sends = [
          Self.portable, Fixtures.send(Message(data: ["k": "v"])), Fixtures.send(Message(badge: 1)),
          Fixtures.send(
            Content.of(
              wns: #"<toast><visual><binding template="ToastText01"><text id="1">x</text></binding></visual></toast>"#)),
        ]
        for send in sends {
          expectEqual(try await Self.outcomes(sender, send, to: [device]), [PushOutcome(.accepted, status: 200)])
        }
        let arrived = simulator.store.notifications(.wns, device)
        #expect(arrived.count == sends.count)
        #expect(arrived.allSatisfy { $0.pushID != nil })
        let faults = ["dead", "unknown", "foreign", "blocked", "dropped", "throttled"].map {
          "https://cloud.notify.windows.com/?token=" + $0
        }
        let outcomes = try await Self.outcomes(sender, Self.portable, to: faults)
        #expect(
          outcomes.map(\.verdict) == [
            .deviceGone, .deviceGone, .deviceGone, .configurationError, .rejected, .retryLater,
          ])
      }
    }
  }
}
