import Crypto
import FanfareCore
import Foundation
import Logging
import NIOPosix
import Support
import Synchronization
import Testing

@testable import HTTP2
@testable import PushServices

@Suite(.timeLimit(.minutes(2))) struct APNsSenderTests {
  private static let token = String(repeating: "0a", count: 32)
  private static let certificates = Result { try TestCertificates() }
  private let clock = ManualClock(at: Fixtures.now)

  private func sender(
    _ double: HTTP2Double, log: LogRecorder = LogRecorder(), _ change: (inout APNsConfiguration) -> Void = { _ in }
  ) throws -> APNsSender {
    var configuration = TestKeys.apns(port: double.port, trustRoots: try Self.certificates.get().authorityPEM)
    change(&configuration)
    return try APNsSender(configuration, SenderResources(clock: clock, logger: log.logger))
  }

  private func push(
    _ sender: APNsSender, ticket: UInt64 = 1, handle: String = token, message: Message = Message(body: "hello"),
    collapseKey: String? = nil, expiresIn: Duration = .seconds(60)
  ) throws -> Push {
    Push(
      ticket: ticket, id: Fixtures.pushID, handle: handle,
      rendering: try sender.render(Fixtures.send(message, collapseKey: collapseKey)), expiresAt: clock.now() + expiresIn
    )
  }

  private func submit(_ sender: APNsSender, _ pushes: Push...) async throws -> [PushOutcome] {
    try await Outcomes.submit(pushes, to: sender)
  }

  private func verdicts(_ sender: APNsSender, _ pushes: Push...) async throws -> [PushOutcome.Verdict] {
    try await Outcomes.verdicts(pushes, to: sender)
  }

  @Test func requestArrivesAsDocumented() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { _ in .answer(.init()) }
    try await Outcomes.running(sender(double)) { sender in
      let outcomes = try await submit(
        sender, push(sender, collapseKey: "score"), push(sender, ticket: 2, message: Message(data: ["k": "v"])))
      #expect(outcomes == [PushOutcome(.accepted, status: 200), PushOutcome(.accepted, status: 200)])
      #expect(sender.readinessProblem == nil)
    }
    let requests = double.requests.map(\.request).sorted { $0.body.count < $1.body.count }
    let (alert, background) = (requests[0], requests[1])
    #expect(alert.method == "POST")
    #expect(alert.path == "/3/device/" + Self.token)
    #expect(alert.authority == "localhost:\(double.port)")
    #expect(String(decoding: alert.body, as: UTF8.self) == #"{"aps":{"alert":{"body":"hello"}}}"#)
    #expect(
      alert.headers.map(\.name).sorted() == [
        "apns-collapse-id", "apns-expiration", "apns-id", "apns-priority", "apns-push-type", "apns-topic",
        "authorization",
      ])
    #expect(alert.headers["apns-id"] == Fixtures.pushID.description)
    #expect(alert.headers["apns-topic"] == "com.example.app")
    #expect(alert.headers["apns-push-type"] == "alert")
    #expect(alert.headers["apns-priority"] == "10")
    #expect(alert.headers["apns-expiration"] == String(Fixtures.now.seconds + 60))
    #expect(alert.headers["apns-collapse-id"] == "score")
    #expect(background.headers["apns-push-type"] == "background")
    #expect(background.headers["apns-priority"] == "5")
    try verify(alert.headers["authorization"])
    await double.close()
  }

  /// Intermediaries must not index a device's path, and no field may precede the pseudo fields.
  @Test func pathIsFirstAndNeverIndexed() throws {
    let now = clock.now()
    let fields = try APNsCredential(TestKeys.apns(port: 1, trustRoots: "")).fields(now: now)
    var writer = APNsRequestWriter(fields: fields, now: now, timeout: .seconds(1))
    let rendering = try APNsRenderer.render(Fixtures.send(Message(body: "hello"), collapseKey: nil))
    let push = Push(
      ticket: 1, id: Fixtures.pushID, handle: Self.token, rendering: rendering, expiresAt: now + .seconds(60))
    let request = writer.request(for: push)
    #expect(request.patience == .seconds(1))
    let short = Push(
      ticket: 1, id: Fixtures.pushID, handle: Self.token, rendering: rendering, expiresAt: now + .milliseconds(300))
    #expect(writer.request(for: short).patience == .milliseconds(300))
    var encoder = HPACKEncoder()
    for _ in 1...2 {
      var block: [UInt8] = []
      encoder.encode(request, into: &block)
      // RFC 7541 §6.2.3: a literal that is never indexed, with the name of static entry 4, then 74 plain bytes.
      #expect(block.prefix(2).elementsEqual([0x14, 74]))
      #expect(block.dropFirst(2).prefix(74).elementsEqual("/3/device/\(Self.token)".utf8))
    }
  }

  /// The provider token as Apple reads it: header, claims, and a signature of 64 bytes.
  private func verify(_ authorization: String?) throws {
    let authorization = try #require(authorization)
    #expect(authorization.hasPrefix("bearer "))
    let parts = authorization.dropFirst(7).split(separator: ".").map(String.init)
    func decoded(_ part: String) throws -> Data {
      let base64 = part.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
      return try #require(Data(base64Encoded: base64 + String(repeating: "=", count: (4 - base64.count % 4) % 4)))
    }
    let header = try Fixtures.object(Array(decoded(parts[0])))
    #expect(header as? [String: String] == ["alg": "ES256", "kid": "ABC123DEFG"])
    let claims = try Fixtures.object(Array(decoded(parts[1])))
    #expect(claims["iss"] as? String == "TEAM123456")
    #expect(claims["iat"] as? Int == Int(Fixtures.now.seconds))
    #expect(claims.count == 2)
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: decoded(parts[2]))
    #expect(TestKeys.p256.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)))
  }

  @Test func expiredAndInvalidPushesAreReportedWithoutRequest() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { _ in .answer(.init()) }
    try await Outcomes.running(sender(double)) { sender in
      let outcomes = try await submit(
        sender, push(sender, ticket: 1, handle: "../x"), push(sender, ticket: 2, expiresIn: .zero),
        push(sender, ticket: 3))
      #expect(outcomes.map(\.verdict) == [.deviceGone, .retryLater, .accepted])
      #expect(outcomes.map(\.reason) == ["BadDeviceToken", "Expired", ""])
    }
    #expect(double.requests.count == 1)
    await double.close()
  }

  @Test func expiredTokenIsReplacedOnNewConnectionButNotWithinTwentyMinutes() async throws {
    let refuses = Mutex(true)
    let double = try await HTTP2Double(Self.certificates.get()) { _ in
      refuses.withLock { $0 }
        ? .answer(.init(status: 403, body: #"{"reason":"ExpiredProviderToken"}"#)) : .answer(.init())
    }
    try await Outcomes.running(sender(double)) { sender in
      expectEqual(try await verdicts(sender, push(sender)), [.reauthenticate])
      #expect(sender.readinessProblem != nil)
      clock.advance(by: .seconds(21 * 60))
      expectEqual(try await verdicts(sender, push(sender)), [.reauthenticate])
      refuses.withLock { $0 = false }
      expectEqual(try await verdicts(sender, push(sender)), [.accepted])
      #expect(sender.readinessProblem == nil)
    }
    let tokens = double.requests.map { $0.request.headers["authorization"] ?? "" }
    #expect(tokens[0] == tokens[1])
    #expect(tokens[1] != tokens[2])
    #expect(Set(double.requests.map(\.connection)).count > 1)
    await double.close()
  }

  @Test func unrelatedKeyAnswerRenewsConnectionsOnce() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { request in
      request.headers["apns-expiration"] == String(Fixtures.now.seconds + 60)
        ? .answer(.init(status: 403, body: #"{"reason":"UnrelatedKeyIdInToken"}"#)) : .answer(.init())
    }
    try await Outcomes.running(sender(double)) { sender in
      expectEqual(try await verdicts(sender, push(sender)), [.retryHere])
      expectEqual(try await verdicts(sender, push(sender, expiresIn: .seconds(61))), [.accepted])
      expectEqual(try await verdicts(sender, push(sender)), [.retryHere])
      expectEqual(try await verdicts(sender, push(sender, expiresIn: .seconds(61))), [.accepted])
    }
    #expect(double.requests.map(\.connection) == [1, 2, 2, 2])
    await double.close()
  }

  /// Apple ties a connection to the key of its first push, so waiting requests with the old key must not become its
  /// first.
  @Test func pushNeverUsesAConnectionOfAnotherKey() async throws {
    let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
    let double = try await HTTP2Double(Self.certificates.get()) { request in
      guard request.path.hasSuffix("00") else { return .answer(.init()) }
      arrived.yield()
      return .silence
    }
    // One stream, so that the second push has to wait for the first.
    try await Outcomes.running(sender(double) { $0.maximumStreamsPerConnection = 1 }) { sender in
      let (reports, reported) = AsyncStream.makeStream(of: [PushResult].self)
      sender.submit([try push(sender, ticket: 1, handle: "00")]) { reported.yield($0) }
      for await _ in arrivals { break }
      sender.submit([try push(sender, ticket: 2)]) { reported.yield($0) }
      let key = P256.Signing.PrivateKey()
      expectEqual(try sender.use(privateKey: key.pemRepresentation, keyID: "GHI456JKLM"), true)
      expectEqual(try await verdicts(sender, push(sender, ticket: 3)), [.accepted])
      let second = await reports.first { _ in true }
      #expect(second?.map(\.ticket) == [2])
      #expect(second?.map(\.outcome) == [PushOutcome(.retryHere, reason: "ConnectionsRenewed")])
      await double.close()
    }
    #expect(double.requests.map(\.connection) == [1, 2])
    #expect(Set(double.requests.map { $0.request.headers["authorization"] }).count == 2)
  }

  /// A connection is unusable once a token on it has expired, so requests that wait with that token must not use the
  /// next one.
  @Test func waitingRequestsWithAnExpiredTokenAreDiscarded() async throws {
    let expired = Mutex<String?>(nil)
    let double = try await HTTP2Double(Self.certificates.get()) { request in
      expired.withLock { $0 } == request.headers["authorization"]
        ? .answer(.init(status: 403, body: #"{"reason":"ExpiredProviderToken"}"#)) : .answer(.init())
    }
    try await Outcomes.running(sender(double) { $0.maximumStreamsPerConnection = 1 }) { sender in
      expectEqual(try await verdicts(sender, push(sender)), [.accepted])
      clock.advance(by: .seconds(21 * 60))
      expired.withLock { $0 = double.requests.first?.request.headers["authorization"] }
      let (reports, reported) = AsyncStream.makeStream(of: PushResult.self)
      // Like the worker, resends the first push in the moment of its answer.
      let again = Mutex<Push?>(try push(sender, ticket: 100))
      sender.submit(try (1...50).map { try push(sender, ticket: $0) }) { results in
        for result in results { reported.yield(result) }
        guard let push = again.withLock({ $0.take() }) else { return }
        sender.submit([push]) { results in for result in results { reported.yield(result) } }
      }
      var outcomes: [UInt64: PushOutcome] = [:]
      for await result in reports {
        outcomes[result.ticket] = result.outcome
        if outcomes.count == 51 { break }
      }
      #expect(outcomes[1]?.verdict == .reauthenticate)
      #expect(outcomes[50] == PushOutcome(.retryHere, reason: "ConnectionsRenewed"))
      #expect(outcomes[100]?.verdict == .accepted)
    }
    // The accepted push, the first of the batch, and those sent in the turn of its answer.
    let old = expired.withLock { $0 }
    #expect(double.requests.count { $0.request.headers["authorization"] == old } <= 3)
    await double.close()
  }

  @Test func refusalOfTheAppIsAProblemUntilAPushIsAccepted() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { request in
      request.path.hasSuffix("ff")
        ? .answer(.init(status: 400, body: #"{"reason":"TopicDisallowed"}"#)) : .answer(.init())
    }
    try await Outcomes.running(sender(double)) { sender in
      let refused = try await submit(sender, push(sender, handle: "ff"))
      #expect(refused == [PushOutcome(.configurationError, reason: "TopicDisallowed", status: 400)])
      #expect(sender.readinessProblem == "APNs answers TopicDisallowed")
      _ = try await submit(sender, push(sender))
      #expect(sender.readinessProblem == nil)
    }
    await double.close()
  }

  @Test func repeatedFaultIsLoggedOnce() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { request in
      request.path.hasSuffix("00")
        ? .answer(.init(status: 429, body: #"{"reason":"TooManyProviderTokenUpdates"}"#))
        : .answer(.init(status: 400, body: #"{"reason":"BadExpirationDate"}"#))
    }
    let log = LogRecorder()
    try await Outcomes.running(sender(double, log: log)) { sender in
      for _ in 0..<5 {
        expectEqual(try await verdicts(sender, push(sender)), [.malformed])
        _ = try await submit(sender, push(sender, handle: "00"))
      }
    }
    #expect(log.count(of: "Push service rejected a request as malformed") == 1)
    #expect(log.count(of: "Provider token was replaced too often") == 1)
    await double.close()
  }

  @Test func silenceAndBrokenConnectionsAreUnknownOutcomes() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { request in
      request.path.hasSuffix("00") ? .silence : request.path.hasSuffix("11") ? .close : .answer(.init())
    }
    for (handle, patience, reason) in [
      ("00", Patience.silence, "DeadlineExceeded"), ("11", Patience.answer, "ConnectionLost"),
    ] {
      try await Outcomes.running(sender(double) { $0.requestTimeout = patience }) { sender in
        try await Outcomes.warmUp(sender) { try push(sender) }
        expectEqual(try await submit(sender, push(sender, handle: handle)), [PushOutcome(.unknown, reason: reason)])
      }
    }
    await double.close()
  }

  @Test func unreachableServiceIsAReadinessProblem() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { _ in .answer(.init()) }
    // Its certificate is not trusted.
    let stranger = try TestCertificates()
    try await Outcomes.running(
      sender(double) {
        $0.trustRoots = stranger.authorityPEM
        $0.requestTimeout = Patience.silence
      }
    ) { sender in
      // The deadline may pass before the handshake fails.
      let end = ContinuousClock.now + Patience.event
      while sender.readinessProblem == nil, ContinuousClock.now < end {
        expectEqual(try await verdicts(sender, push(sender)), [.retryLater])
      }
      #expect(sender.readinessProblem?.contains("cannot connect") == true)
    }
    #expect(double.requests.isEmpty)
    await double.close()
  }

  @Test func closedSenderAcceptsNothing() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { _ in .answer(.init()) }
    let sender = try sender(double)
    try await Outcomes.running(sender) { _ in }
    expectEqual(try await submit(sender, push(sender)), [PushOutcome(.retryLater, reason: "Closed")])
    await double.close()
  }

  @Test func thousandPushesInOneBatchAreAllReported() async throws {
    let double = try await HTTP2Double(Self.certificates.get()) { _ in .answer(.init()) }
    try await Outcomes.running(sender(double)) { sender in
      let rendering = try sender.render(Fixtures.send(Message(body: "hello")))
      let pushes = (0..<1000).map { index in
        Push(
          ticket: index, id: PushID(high: index, low: index), handle: Self.token, rendering: rendering,
          expiresAt: clock.now() + .seconds(60))
      }
      let outcomes = try await Outcomes.submit(pushes, to: sender)
      #expect(outcomes.count == 1000)
      #expect(outcomes.allSatisfy { $0.verdict == .accepted })
    }
    #expect(Set(double.requests.map { $0.request.headers["apns-id"] }).count == 1000)
    await double.close()
  }
}
