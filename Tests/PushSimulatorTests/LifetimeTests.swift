import FanfareCore
import FoundationEssentials
import HTTP2
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import PushSimulator

@Suite(.timeLimit(.minutes(2)))
struct LifetimeTests {
  @Test func credentialsSurviveTheirFiles() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "simulator-\(UUID().uuidString)").path
    // A directory that is left behind does not fail the test.
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let credentials = try SimulatorFixture.credentials.get()
    #expect(!SimulatorCredentials.exist(in: directory))
    let endpoints = SimulatorEndpoints(host: "127.0.0.1", ports: ["apns": 1], httpsPort: 3, adminPort: 4)
    try credentials.write(to: directory, endpoints: endpoints)
    #expect(SimulatorCredentials.exist(in: directory))
    for name in ["apns.p8", "service-account.json", "server-key.pem", "wns.json"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/" + name)
      #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
    }
    let account = try String(contentsOfFile: directory + "/service-account.json", encoding: .utf8)
    #expect(account.contains(#""token_uri" : "https://127.0.0.1:3/token""#))
    #expect(account.contains("BEGIN PRIVATE KEY"))

    var configuration = SimulatorConfiguration()
    configuration.credentials = try SimulatorCredentials(contentsOf: directory)
    #expect(configuration.credentials?.google.privateKeyPEM == credentials.google.privateKeyPEM)
    try await SimulatorFixture.run(configuration) { fixture in
      let token = try await Signing.providerToken(credentials.apns)
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      _ = try await FCMTests.accessToken(fixture)
      _ = try await WNSTests.accessToken(fixture)
    }
  }

  /// A directory is used beyond its certificate's lifetime; the vendors' credentials must not change with the
  /// certificate.
  @Test(arguments: [(days: 400, isRenewed: true), (364, true), (336, true), (334, false), (0, false)])
  func expiringCertificateIsReplaced(days: Int64, isRenewed: Bool) async throws {
    let kept = try SimulatorCredentials.generate(now: SystemWallClock().now() + .seconds(-days * 86_400))
    var credentials = kept
    let hasRenewed = try credentials.renewCertificate()
    #expect(hasRenewed == isRenewed)
    #expect((credentials.authorityPEM != kept.authorityPEM) == isRenewed)
    #expect((credentials.certificateKeyPEM != kept.certificateKeyPEM) == isRenewed)
    #expect(credentials.apns.privateKeyPEM == kept.apns.privateKeyPEM)
    #expect(credentials.google.privateKeyPEM == kept.google.privateKeyPEM)
    #expect(credentials.windows.packageSecret == kept.windows.packageSecret)
    var configuration = SimulatorConfiguration()
    configuration.credentials = credentials
    try await SimulatorFixture.run(configuration) { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
    }
  }

  /// Its certificate is valid for local hosts only, and its admin routes are not for others.
  @Test(arguments: ["0.0.0.0", "::", "192.0.2.1", "127.0.0.2", "simulator.example", ""])
  func onlyThisMachineIsServed(host: String) throws {
    var configuration = SimulatorConfiguration()
    configuration.credentials = try SimulatorFixture.credentials.get()
    configuration.host = host
    #expect {
      try PushSimulator(
        configuration: configuration, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
        logger: Logger(label: "simulator"))
    } throws: { error in
      "\(error)" == "simulator.host must be one of 127.0.0.1, ::1, localhost: it serves this machine only"
    }
  }

  @Test func portInUseEndsTheRun() async throws {
    try await SimulatorFixture.run { fixture in
      var configuration = SimulatorConfiguration()
      configuration.credentials = fixture.credentials
      configuration.adminPort = fixture.endpoints.adminPort
      let second = try PushSimulator(
        configuration: configuration, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
        logger: Logger(label: "simulator"))
      await #expect(throws: (any Error).self) { try await second.withRunning { _ in } }
    }
  }

  @Test func anUnansweredRequestDoesNotKeepItRunning() async throws {
    try await SimulatorFixture.run { fixture in
      fixture.simulator.faults.add(Fault(.wns, .silence))
      await #expect(throws: (any Error).self) {
        try await WNSTests.push(fixture, token: WNSTests.accessToken(fixture), timeout: .milliseconds(100))
      }
    }
  }
}
