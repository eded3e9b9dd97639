import Crypto
import FanfareCore
import Logging
import Metrics
import NIOHTTP1
import Support
import Synchronization
import Testing

@testable import PushServices

/// The gauge that shows when a credential expires.
@Suite(.timeLimit(.minutes(1))) struct CredentialExpiryTests {
  private static let certificates = Result { try TestCertificates() }
  private let clock = ManualClock(at: Fixtures.now)

  private func sender(
    _ configuration: APNsConfiguration, measuredBy metrics: LastValues, checkInterval: Duration = .seconds(5)
  ) throws -> APNsSender {
    try withMetricsFactory(metrics) {
      try APNsSender(
        configuration, SenderResources(clock: clock, checkInterval: checkInterval, logger: Logger(label: "test")))
    }
  }

  @Test func providerTokenOfAnIdleHubIsReplaced() async throws {
    let gauges = LastValues()
    let configuration = TestKeys.apns(port: 1, trustRoots: try Self.certificates.get().authorityPEM)
    try await staysInTheFuture(
      gauges, of: sender(configuration, measuredBy: gauges, checkInterval: .milliseconds(5)), startingWith: 3600)
  }

  @Test func accessTokenOfAnIdleHubIsReplaced() async throws {
    let endpoint = try await HTTP1Server(Self.certificates.get()) { _ in
      .init(status: .ok, body: #"{"access_token":"t","expires_in":3600}"#)
    }
    let url = "https://localhost:\(endpoint.port)/token"
    var google = FCMConfiguration(serviceAccount: try ServiceAccountKey(json: TestKeys.serviceAccountFile()))
    google.tokenEndpoint = url
    google.trustRoots = try Self.certificates.get().authorityPEM
    var windows = WNSConfiguration(flow: .store(packageSID: "ms-app://s-1-15-2-1", secret: "s"))
    windows.tokenEndpoint = url
    windows.trustRoots = google.trustRoots
    let (fcm, wns) = (LastValues(), LastValues())
    try await staysInTheFuture(
      fcm,
      of: withMetricsFactory(fcm) {
        try FCMSender(
          google, SenderResources(clock: clock, checkInterval: .milliseconds(5), logger: Logger(label: "test")))
      }, startingWith: 3600)
    clock.advance(by: .seconds(-70 * 60))
    try await staysInTheFuture(
      wns,
      of: withMetricsFactory(wns) {
        try WNSSender(
          windows, SenderResources(clock: clock, checkInterval: .milliseconds(5), logger: Logger(label: "test")))
      }, startingWith: 3600)
    try await endpoint.close()
  }

  /// Runs a sender for 70 minutes, without a push.
  private func staysInTheFuture(
    _ gauges: LastValues, of sender: some PushSender, startingWith lifetime: Int64
  ) async throws {
    func end(is seconds: Int64) async {
      for await _ in gauges.updates where gauges[Self.gauge] == Double(Fixtures.now.seconds + seconds) { return }
    }
    try await Outcomes.running(sender) { _ in
      await end(is: lifetime)
      clock.advance(by: .seconds(70 * 60))
      await end(is: 70 * 60 + lifetime)
    }
  }

  private static let gauge = "fanfare_push_credential_expiry_timestamp_seconds"

  @Test func gaugeShowsTheProviderTokenInUse() async throws {
    let isExpired = Mutex(false)
    let double = try await HTTP2Double(Self.certificates.get()) { _ in
      isExpired.withLock { $0 }
        ? .answer(.init(status: 403, body: #"{"reason":"ExpiredProviderToken"}"#)) : .answer(.init())
    }
    let configuration = TestKeys.apns(port: double.port, trustRoots: try Self.certificates.get().authorityPEM)
    let gauges = LastValues()
    let sender = try sender(configuration, measuredBy: gauges)
    func push() async throws {
      let push = Push(
        ticket: 1, id: Fixtures.pushID, handle: "0a",
        rendering: try sender.render(Fixtures.send(Message(body: "hello"))),
        expiresAt: clock.now() + .seconds(60))
      _ = try await Outcomes.submit([push], to: sender)
    }
    /// Seconds from the start of the test to the credential's expiry.
    var lifetime: Int? {
      gauges[Self.gauge].map { Int($0) - Int(Fixtures.now.seconds) }
    }
    try await Outcomes.running(sender) { _ in
      try await push()
      #expect(lifetime == 3600)
      clock.advance(by: .seconds(44 * 60))
      try await push()
      #expect(lifetime == 3600)
      // The next token.
      clock.advance(by: .seconds(60))
      try await push()
      #expect(lifetime == 45 * 60 + 3600)
      // The replacement of a token that Apple reports as expired.
      clock.advance(by: .seconds(20 * 60))
      isExpired.withLock { $0 = true }
      try await push()
      #expect(lifetime == 65 * 60 + 3600)
      isExpired.withLock { $0 = false }
      // The first token of another key.
      clock.advance(by: .seconds(60))
      _ = try sender.use(privateKey: P256.Signing.PrivateKey().pemRepresentation, keyID: "GHI456JKLM")
      try await push()
      #expect(lifetime == 66 * 60 + 3600)
    }
    await double.close()
  }
}

/// Metrics that keep only the last value of each recorder.
private final class LastValues: MetricsFactory {
  private final class Recorder: RecorderHandler {
    let value = Mutex<Double?>(nil)
    private let update: AsyncStream<Void>.Continuation

    init(update: AsyncStream<Void>.Continuation) { self.update = update }

    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) {
      self.value.withLock { $0 = value }
      update.yield()
    }
  }

  /// A value has been recorded.
  let updates: AsyncStream<Void>
  private let update: AsyncStream<Void>.Continuation

  private let recorders = Mutex<[String: Recorder]>([:])

  init() { (updates, update) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

  /// The last value recorded under the label; nil if there is none.
  subscript(label: String) -> Double? { recorders.withLock { $0[label] }?.value.withLock { $0 } }

  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    recorders.withLock { recorders in
      let recorder = recorders[label] ?? Recorder(update: update)
      recorders[label] = recorder
      return recorder
    }
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { NOOPMetricsHandler.instance }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { NOOPMetricsHandler.instance }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}
