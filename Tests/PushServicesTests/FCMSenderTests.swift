import CryptoExtras
import FanfareCore
import Foundation
import HTTP2
import JWTKit
import Logging
import NIOHTTP1
import Support
import Synchronization
import Testing

@testable import PushServices

@Suite struct FCMSenderTests {
  private static let certificates = Result { try TestCertificates() }
  private let clock = ManualClock(at: Fixtures.now)

  /// Numbers the tokens that it issues, while it is allowed to.
  private final class TokenEndpoint: Sendable {
    let answer = Mutex<HTTP1Server.Response?>(nil)
    let count = Mutex(0)

    func respond(_ request: HTTP1Server.Request) -> HTTP1Server.Response? {
      let number = count.withLock { count in
        count += 1
        return count
      }
      return answer.withLock { $0 }
        ?? .init(status: .ok, body: #"{"access_token":"ya29.\#(number)","expires_in":3599,"token_type":"Bearer"}"#)
    }
  }

  private struct Fixture {
    let tokens: TokenEndpoint
    let endpoint: HTTP1Server
    let double: HTTP2Double
    let sender: FCMSender

    func close() async throws {
      await double.close()
      try await endpoint.close()
    }
  }

  private func laboratory(
    log: LogRecorder = LogRecorder(), tokenTimeout: Duration = Patience.answer,
    _ react: @escaping @Sendable (HTTP2ServerRequest) -> HTTP2Double.Reaction = { _ in .answer(.init()) }
  ) async throws -> Fixture {
    let certificates = try Self.certificates.get()
    let tokens = TokenEndpoint()
    let endpoint = try await HTTP1Server(certificates) { tokens.respond($0) }
    let double = try await HTTP2Double(certificates, react: react)
    var configuration = FCMConfiguration(serviceAccount: try ServiceAccountKey(json: TestKeys.serviceAccountFile()))
    configuration.host = "localhost"
    configuration.port = double.port
    configuration.tokenEndpoint = "https://localhost:\(endpoint.port)/token"
    configuration.trustRoots = certificates.authorityPEM
    configuration.requestTimeout = Patience.answer
    configuration.tokenTimeout = tokenTimeout
    let sender = try FCMSender(configuration, SenderResources(clock: clock, logger: log.logger))
    return Fixture(tokens: tokens, endpoint: endpoint, double: double, sender: sender)
  }

  private func push(
    _ sender: FCMSender, ticket: UInt64 = 1, handle: String = "T", body: String = "hello", isBroadcast: Bool = false
  )
    throws -> Push
  {
    Push(
      ticket: ticket, id: Fixtures.pushID, handle: handle,
      rendering: try sender.render(Fixtures.send(Message(body: body))),
      expiresAt: clock.now() + .seconds(60), isBroadcast: isBroadcast)
  }

  @Test func truncatedTokenAnswerIsFetchedAgain() async throws {
    let laboratory = try await laboratory(tokenTimeout: Patience.silence)
    laboratory.tokens.answer.withLock { $0 = .init(status: .ok, body: #"{"access_token":"#, isWhole: false) }
    try await Outcomes.running(laboratory.sender) { sender in
      let first = try await Outcomes.submit([push(sender)], to: sender)[0]
      #expect(first.verdict == .retryLater)
      laboratory.tokens.answer.withLock { $0 = nil }
      // A second fetch may have started before the endpoint recovered, and later ones may take too long on a busy
      // machine.
      var last = first
      let end = ContinuousClock.now + Patience.event
      while last.verdict != .accepted, ContinuousClock.now < end {
        clock.advance(by: .seconds(60))
        last = try await Outcomes.submit([push(sender)], to: sender)[0]
      }
      #expect(last.verdict == .accepted)
    }
    try await laboratory.close()
  }

  @Test func pushIsNotSentAfterItsExpiry() async throws {
    let laboratory = try await laboratory()
    let push = try push(laboratory.sender)
    for (lifetime, patience) in [
      (Duration.milliseconds(300), Duration.milliseconds(300)), (.seconds(60), .seconds(10)),
    ] {
      let writer = FCMRequestWriter(
        shared: HTTP2Headers(), now: push.expiresAt + (.zero - lifetime), timeout: .seconds(10))
      #expect(writer.request(for: push, ticket: 1).patience == patience)
    }
    try await laboratory.close()
  }

  @Test func requestArrivesAsDocumented() async throws {
    let laboratory = try await laboratory()
    try await Outcomes.running(laboratory.sender) { sender in
      expectEqual(try await Outcomes.submit([push(sender)], to: sender), [PushOutcome(.accepted, status: 200)])
      #expect(sender.readinessProblem == nil)
    }
    let request = try #require(laboratory.double.requests.first?.request)
    #expect(request.method == "POST")
    #expect(request.path == "/v1/projects/demo-project/messages:send")
    #expect(request.authority == "localhost:\(laboratory.double.port)")
    #expect(request.headers["authorization"] == "Bearer ya29.1")
    #expect(request.headers["content-type"] == "application/json")
    let message = try #require(try Fixtures.object(request.body)["message"])
    #expect(member(message, "token") as? String == "T")
    #expect(member(message, "notification", "body") as? String == "hello")
    #expect(member(message, "android", "ttl") as? String == "60s")
    #expect(member(message, "apns", "headers", "apns-expiration") as? String == String(Fixtures.now.seconds + 60))
    #expect(member(message, "webpush", "headers", "TTL") as? String == "60")
    #expect(member(message, "data", "pushId") as? String == Fixtures.pushID.description)
    try await verify(#require(laboratory.endpoint.requests.first))
    try await laboratory.close()
  }

  /// The assertion as Google reads it.
  private func verify(_ request: HTTP1Server.Request) async throws {
    #expect(request.head.uri == "/token")
    #expect(request.head.headers["content-type"] == ["application/x-www-form-urlencoded"])
    let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
    #expect(request.body.hasPrefix(prefix))
    let keys = JWTKeyCollection()
    let publicKey = try Insecure.RSA.PublicKey(pem: TestKeys.rsa.get().publicKey.pemRepresentation)
    await keys.add(rsa: publicKey, digestAlgorithm: .sha256, kid: "key-1")
    let claims = try await keys.verify(String(request.body.dropFirst(prefix.count)), as: ServiceAccountAssertion.self)
    #expect(claims.iss == "push@demo-project.example")
    #expect(claims.aud == "https://oauth2.example/token")
    #expect(claims.scope == "https://www.googleapis.com/auth/firebase.messaging")
    #expect(claims.iat == Fixtures.now.seconds)
    #expect(claims.exp == Fixtures.now.seconds + 3600)
  }

  @Test func pushesWaitForOneTokenAndKeepIt() async throws {
    let laboratory = try await laboratory()
    // Submitted before there is a token, by several callers.
    let sender = laboratory.sender
    let early = Task { try await Outcomes.verdicts([push(sender, ticket: 1), push(sender, ticket: 2)], to: sender) }
    let second = Task { try await Outcomes.verdicts([push(sender, ticket: 3)], to: sender) }
    try await Outcomes.running(sender) { sender in
      expectEqual(try await early.value, [.accepted, .accepted])
      expectEqual(try await second.value, [.accepted])
      _ = try await Outcomes.submit([push(sender)], to: sender)
      #expect(laboratory.tokens.count.withLock { $0 } == 1)
      clock.advance(by: .seconds(3700))
      expectEqual(try await Outcomes.verdicts([push(sender)], to: sender), [.accepted])
      #expect(laboratory.tokens.count.withLock { $0 } == 2)
    }
    #expect(laboratory.double.requests.last?.request.headers["authorization"] == "Bearer ya29.2")
    try await laboratory.close()
  }

  @Test func refusedReplacementTokenIsAConfigurationError() async throws {
    let laboratory = try await laboratory { request in
      request.headers["authorization"] == "Bearer ya29.3"
        ? .answer(.init()) : .answer(.init(status: 401, body: #"{"error":{"status":"UNAUTHENTICATED"}}"#))
    }
    try await Outcomes.running(laboratory.sender) { sender in
      let first = try await Outcomes.submit([push(sender, ticket: 1), push(sender, ticket: 2)], to: sender)
      #expect(first.map(\.verdict) == [.reauthenticate, .reauthenticate])
      let second = try await Outcomes.submit([push(sender)], to: sender)
      #expect(second == [PushOutcome(.configurationError, reason: "UNAUTHENTICATED", status: 401)])
      #expect(sender.readinessProblem == "FCM answers UNAUTHENTICATED")
      clock.advance(by: .seconds(60))
      expectEqual(try await Outcomes.verdicts([push(sender)], to: sender), [.accepted])
      #expect(sender.readinessProblem == nil)
    }
    try await laboratory.close()
  }

  @Test func thirdPartyRefusalIsLoggedAndDoesNotStopTheSender() async throws {
    let detail =
      #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"THIRD_PARTY_AUTH_ERROR"}"#
    let log = LogRecorder()
    let laboratory = try await laboratory(log: log) { request in
      String(decoding: request.body, as: UTF8.self).contains(#""token":"iphone""#)
        ? .answer(.init(status: 401, body: #"{"error":{"status":"UNAUTHENTICATED","details":[\#(detail)]}}"#))
        : .answer(.init())
    }
    try await Outcomes.running(laboratory.sender) { sender in
      for _ in 0..<3 {
        expectEqual(
          try await Outcomes.submit([push(sender, handle: "iphone")], to: sender),
          [PushOutcome(.rejected, reason: "THIRD_PARTY_AUTH_ERROR", status: 401)])
        expectEqual(try await Outcomes.verdicts([push(sender)], to: sender), [.accepted])
      }
      #expect(sender.readinessProblem == nil)
      // The token is not at fault, and there is one log line, not one per device.
      #expect(laboratory.tokens.count.withLock { $0 } == 1)
      #expect(log.count(of: "Firebase cannot authenticate to the push service behind a device") == 1)
    }
    try await laboratory.close()
  }

  @Test func refusalByTheTokenEndpointIsAConfigurationError() async throws {
    let laboratory = try await laboratory()
    laboratory.tokens.answer.withLock { $0 = .init(status: .badRequest, body: #"{"error":"invalid_grant"}"#) }
    try await Outcomes.running(laboratory.sender) { sender in
      let refused = PushOutcome(.configurationError, reason: "invalid_grant", status: 400)
      expectEqual(try await Outcomes.submit([push(sender)], to: sender), [refused])
      expectEqual(try await Outcomes.submit([push(sender)], to: sender), [refused])
      #expect(sender.readinessProblem == "the token endpoint answers invalid_grant")
      #expect(laboratory.tokens.count.withLock { $0 } == 1)
      laboratory.tokens.answer.withLock { $0 = .init(status: .serviceUnavailable) }
      clock.advance(by: .seconds(60))
      let unavailable = try await Outcomes.submit([push(sender)], to: sender)
      #expect(unavailable.map(\.verdict) == [.retryLater])
      #expect(unavailable.map(\.reason) == ["TokenUnavailable"])
      laboratory.tokens.answer.withLock { $0 = nil }
      clock.advance(by: .seconds(60))
      expectEqual(try await Outcomes.verdicts([push(sender)], to: sender), [.accepted])
      #expect(sender.readinessProblem == nil)
    }
    try await laboratory.close()
  }

  @Test func blamedTokenIsRemovedOnlyIfThePayloadIsProven() async throws {
    let laboratory = try await laboratory { request in
      guard String(decoding: request.body, as: UTF8.self).contains(#""token":"bad""#) else { return .answer(.init()) }
      let violation =
        #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token"}]}"#
      return .answer(.init(status: 400, body: #"{"error":{"status":"INVALID_ARGUMENT","details":[\#(violation)]}}"#))
    }
    try await Outcomes.running(laboratory.sender) { sender in
      expectEqual(try await Outcomes.verdicts([push(sender, handle: "bad")], to: sender), [.rejected])
      expectEqual(try await Outcomes.verdicts([push(sender, handle: "good")], to: sender), [.accepted])
      expectEqual(try await Outcomes.verdicts([push(sender, handle: "bad")], to: sender), [.deviceGone])
      expectEqual(try await Outcomes.verdicts([push(sender, handle: "bad", body: "other")], to: sender), [.rejected])
    }
    try await laboratory.close()
  }

  @Test func acceptedPayloadOfEveryBroadcastIsProven() async throws {
    let laboratory = try await laboratory { request in
      guard String(decoding: request.body, as: UTF8.self).contains(#""token":"bad""#) else { return .answer(.init()) }
      let violation =
        #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token"}]}"#
      return .answer(.init(status: 400, body: #"{"error":{"status":"INVALID_ARGUMENT","details":[\#(violation)]}}"#))
    }
    try await Outcomes.running(laboratory.sender) { sender in
      func pushes(_ handle: String) throws -> [Push] {
        try (0..<20).map { try push(sender, ticket: $0, handle: handle, body: "payload \($0)", isBroadcast: true) }
      }
      expectEqual(try await Outcomes.verdicts(pushes("good"), to: sender), Array(repeating: .accepted, count: 20))
      expectEqual(try await Outcomes.verdicts(pushes("bad"), to: sender), Array(repeating: .deviceGone, count: 20))
    }
    try await laboratory.close()
  }

  /// FCM's behaviour for an iPhone: a push that shows nothing and is no background push gets the answer for an invalid
  /// token.
  @Test func payloadForOnePlatformIsNeverProven() async throws {
    let laboratory = try await laboratory { request in
      let body = String(decoding: request.body, as: UTF8.self)
      let isBackground = body.contains(#""apns-priority":"5""#) && body.contains(#""content-available":1"#)
      guard body.contains(#""token":"iphone""#), !isBackground else { return .answer(.init()) }
      let violation =
        #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token"}]}"#
      return .answer(.init(status: 400, body: #"{"error":{"status":"INVALID_ARGUMENT","details":[\#(violation)]}}"#))
    }
    try await Outcomes.running(laboratory.sender) { sender in
      func verdicts(_ content: Content) async throws -> [PushOutcome.Verdict] {
        let rendering = try sender.render(Fixtures.send(content))
        var verdicts: [PushOutcome.Verdict] = []
        for handle in ["android", "iphone"] {
          let push = Push(
            ticket: 1, id: Fixtures.pushID, handle: handle, rendering: rendering, expiresAt: clock.now() + .seconds(60))
          verdicts += try await Outcomes.verdicts([push], to: sender)
        }
        return verdicts
      }
      for content in [
        Content(message: Message(data: ["k": "v"])), Content.of(fcm: Array(#"{"data":{"k":"v"}}"#.utf8)),
        Content.of(fcm: Array(#"{"priority":"high","data":{"k":"v"}}"#.utf8)),
      ] {
        expectEqual(try await verdicts(content), [.accepted, .accepted])
      }
      // The caller's part for Apple may be wrong for Apple only.
      let own = Content.of(fcm: Array(#"{"data":{"k":"v"},"apns":{"headers":{"apns-priority":"10"}}}"#.utf8))
      for _ in 0..<2 { expectEqual(try await verdicts(own), [.accepted, .rejected]) }
    }
    try await laboratory.close()
  }

  @Test func pushesWaitingForATokenAreReportedAtTheEnd() async throws {
    let laboratory = try await laboratory()
    let sender = laboratory.sender
    async let outcomes = Outcomes.submit([push(sender)], to: sender)
    let run = Task { try await sender.run() }
    run.cancel()
    expectEqual(try await outcomes.map(\.verdict), [.retryLater])
    try await run.value
    expectEqual(try await Outcomes.submit([push(sender)], to: sender), [PushOutcome(.retryLater, reason: "Closed")])
    try await laboratory.close()
  }
}
