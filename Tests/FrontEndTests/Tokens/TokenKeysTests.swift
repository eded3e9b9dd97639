import Crypto
import FanfareCore
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Operations
import Support
import Testing

@testable import FrontEnd

/// The keys of an issuer over real HTTP and TLS, and from a real file.
@Suite(.timeLimit(.minutes(1))) struct TokenKeysTests {
  private let clock = ManualClock()
  private let log = LogRecorder()

  /// Runs the service until `body` returns. The clock is the test's.
  private func run(
    _ configuration: TokenKeys.Configuration, _ body: (TokenKeys) async throws -> Void
  ) async throws {
    let keys = TokenKeys(configuration, clock: clock, logger: log.logger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await keys.run() }
      try await body(keys)
      group.cancelAll()
      try await group.waitForAll()
    }
  }

  private func keySet(_ ids: String...) throws -> [UInt8] {
    try TestIssuer.keySet(ids.map { .p256($0, P256.Signing.PrivateKey()) })
  }

  private func isKnown(_ id: String, _ keys: TokenKeys) async throws -> Bool { try await keys.key(id, .es256) != nil }

  /// Lets time pass, and a fetch that is then due finish.
  private func advance(by duration: Duration, _ keys: TokenKeys) async {
    clock.advance(by: duration)
    keys.wakeIfDue()
    _ = await keys.waitForFetch()
  }

  @Test func rotatedKeysAreFetchedForAnUnknownKeyOnceAMinute() async throws {
    let server = try await KeyServer(.init(body: try keySet("a")))
    try await run(.init(location: .url(server.url, trustRoots: nil))) { keys in
      #expect(try await isKnown("a", keys), "requests wait for the first fetch")
      #expect(keys.problem() == nil)
      server.answer(try keySet("b"))
      #expect(try await isKnown("a", keys) && server.requests == 1)
      #expect(try await isKnown("b", keys) && server.requests == 2)
      #expect(try await !isKnown("a", keys) && server.requests == 2, "the old key is gone")
      for id in 0..<100 {
        await #expect(throws: AuthenticationError.notFetched) { try await isKnown("\(id)", keys) }
      }
      #expect(server.requests == 2)
      clock.advance(by: .seconds(60))
      #expect(try await !isKnown("c", keys) && server.requests == 3)
      // Periodically too.
      server.answer(try keySet("d"))
      await advance(by: .seconds(900), keys)
      #expect(try await isKnown("d", keys) && server.requests == 4)
    }
    try await server.close()
  }

  @Test func verifiedTokenIsValidUntilItExpiresOrTheKeysChange() async throws {
    let key = TestIssuer.Key.p256("a", P256.Signing.PrivateKey())
    let server = try await KeyServer(.init(body: try TestIssuer.keySet([key])))
    let rules = TokenRules(issuer: "https://issuer.example", audiences: ["fanfare"])
    let expiry = clock.now().seconds + 120
    let token = try TestIssuer.token(
      #"{"iss":"https://issuer.example","aud":"fanfare","sub":"alice","exp":\#(expiry)}"#, key: key)
    try await run(.init(location: .url(server.url, trustRoots: nil))) { keys in
      let authenticator = TokenAuthenticator(
        hub: .default, rules: rules, policy: ScopePolicy(), keys: keys, clock: clock)
      func authenticate() async throws -> Validity? {
        try await authenticator.authenticate(.bearer(token), hub: .default, from: .unknown)?.validity
      }
      let first = try #require(try await authenticate())
      let second = try #require(try await authenticate())
      #expect(first.isValid && second.isValid)
      server.answer(try TestIssuer.keySet([key, .p256("b", P256.Signing.PrivateKey())]))
      clock.advance(by: .seconds(60))
      _ = try await isKnown("b", keys)
      #expect(!first.isValid && !second.isValid)
      let third = try #require(try await authenticate())
      clock.advance(by: .seconds(119))
      #expect(third.isValid)
      clock.advance(by: .seconds(1))
      #expect(!third.isValid)
    }
    try await server.close()
  }

  @Test func manyRequestsShareOneFetch() async throws {
    let server = try await KeyServer(nil)
    let set = try keySet("a")
    try await run(.init(location: .url(server.url, trustRoots: nil))) { keys in
      try await withThrowingTaskGroup { group in
        for _ in 0..<200 { group.addTask { try await keys.key("a", .es256) != nil } }
        await server.received(1)
        server.answer(set)
        for try await isKnown in group { #expect(isKnown) }
      }
      #expect(server.requests == 1)
    }
    try await server.close()
  }

  @Test func oldKeysServeUntilTheLimitWhileTheURLFails() async throws {
    let server = try await KeyServer(.init(body: try keySet("a")))
    var configuration = TokenKeys.Configuration(location: .url(server.url, trustRoots: nil))
    configuration.maximumAge = .seconds(3600)
    try await run(configuration) { keys in
      #expect(try await isKnown("a", keys))
      let first = try keySet("a")
      for answer in [
        KeyServer.Answer(status: .internalServerError, body: first), .init(body: Array("{".utf8)),
        .init(body: [UInt8](repeating: 0x20, count: VerificationKeys.maximumSize + 1)),
        .init(status: .movedPermanently, headers: ["location": "/elsewhere"]),
      ] {
        server.answer(answer)
        let before = server.requests
        await advance(by: .seconds(840), keys)
        await advance(by: .seconds(60), keys)
        #expect(server.requests > before, "redirects are not followed, and failures are repeated")
        #expect((keys.problem() == nil) == (clock.now() - ManualClock().now() < .seconds(3600)))
      }
      await #expect(throws: AuthenticationError.unavailable) { try await keys.key("a", .es256) }
      #expect(keys.problem()?.contains("the key set's URL answered 301") == true)
      #expect(log.count(of: "Token keys could not be fetched") == 4, "once for each reason")
      server.answer(first)
      await advance(by: .seconds(60), keys)
      #expect(try await isKnown("a", keys) && keys.problem() == nil)
    }
    try await server.close()
  }

  @Test func silentServersCostTheTimeLimit() async throws {
    let server = try await KeyServer(.init(body: [0x7B], isWhole: false))
    var configuration = TokenKeys.Configuration(location: .url(server.url, trustRoots: nil))
    configuration.fetchTimeout = .milliseconds(100)
    try await run(configuration) { keys in
      await #expect(throws: AuthenticationError.unavailable) { try await keys.key("a", .es256) }
      #expect(keys.problem()?.contains("did not answer in time") == true)
    }
    try await server.close()
  }

  @Test func serversNeedATrustedCertificateWithTheirName() async throws {
    let (certificates, others) = (try TestCertificates(), try TestCertificates())
    let server = try await KeyServer(.init(body: try keySet("a")), certificates: certificates)
    try await run(.init(location: .url(server.url, trustRoots: Array(certificates.authorityPEM.utf8)))) { keys in
      let isKnown = try await isKnown("a", keys)
      #expect(isKnown)
    }
    for roots in [Array(others.authorityPEM.utf8), nil] {
      try await run(.init(location: .url(server.url, trustRoots: roots))) { keys in
        await #expect(throws: AuthenticationError.unavailable) { try await keys.key("a", .es256) }
      }
    }
    try await server.close()
    let nameless = try TestCertificates(coversAddress: false)
    let other = try await KeyServer(.init(body: try keySet("a")), certificates: nameless)
    try await run(.init(location: .url(other.url, trustRoots: Array(nameless.authorityPEM.utf8)))) { keys in
      await #expect(throws: AuthenticationError.unavailable) { try await keys.key("a", .es256) }
    }
    try await other.close()
  }

  @Test func fileIsReadAgainWhenItChanges() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID()).json").path
    func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: path), options: .atomic) }
    try write(try keySet("a"))
    // Errors are ignored: the file is in the temporary directory.
    defer { try? FileManager.default.removeItem(atPath: path) }
    let configuration = TokenKeys.Configuration(location: .file(path))
    try await run(configuration) { keys in
      #expect(try await isKnown("a", keys))
      try write(try keySet("b"))
      await advance(by: .seconds(1), keys)
      #expect(try await isKnown("b", keys))
      #expect(try await !isKnown("a", keys))
      // An invalid or missing file changes nothing.
      for content in ["{", #"{"keys":[]}"#] {
        try write(Array(content.utf8))
        await advance(by: .seconds(5), keys)
        #expect(try await isKnown("b", keys))
      }
      try FileManager.default.removeItem(atPath: path)
      await advance(by: .seconds(5), keys)
      #expect(try await isKnown("b", keys) && keys.problem() == nil)
    }
    let keys = TokenKeys(configuration, clock: clock, logger: log.logger)
    await #expect(throws: FrontEndError.self) { try await keys.check() }
    try write(Array("{}".utf8))
    await #expect(throws: FrontEndError.self) { try await keys.check() }
    try write(try keySet("a"))
    try await keys.check()
  }

  /// A flood of invented keys is recorded, and fills the address's budget; right tokens pass all the same.
  @Test func tokensWithInventedKeysLeaveATrail() async throws {
    let key = TestIssuer.Key.p256("a", P256.Signing.PrivateKey())
    let server = try await KeyServer(.init(body: try TestIssuer.keySet([key])))
    let trail = LogRecorder()
    try await run(.init(location: .url(server.url, trustRoots: nil))) { keys in
      let authenticator = TokenAuthenticator(
        hub: .default, rules: TokenRules(issuer: "i", audiences: ["f"]), policy: ScopePolicy(), keys: keys, clock: clock
      )
      try await Harness.run({
        $0.configuration.logins.perAddress = 2
        $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator, Harness.authenticator])]
        $0.security = SecurityLog(logger: trail.logger)
      }) { app in
        func request(_ key: TestIssuer.Key) async throws -> Reply {
          let expiry = clock.now().seconds + 3600
          let token = try TestIssuer.token(#"{"iss":"i","aud":"f","sub":"alice","exp":\#(expiry)}"#, key: key)
          return try await app.request(
            .get, "/api/sends", as: nil, headers: [("Authorization", "Bearer \(token)")])
        }
        #expect(try await request(key).status == 200)
        let other = P256.Signing.PrivateKey()
        try await request(.p256("0", other)).expectProblem(401, "unauthenticated")
        for number in 1...30 { #expect(try await request(.p256("\(number)", other)).status == 503) }
        #expect(trail.count(of: "login.failed") == 31)
        try await app.request(.get, "/api/sends", as: "carol").expectProblem(429, "tooManyFailures")
        #expect(try await request(key).status == 200)
      }
    }
    try await server.close()
  }

  @Test func verifiedTokensAreRememberedUntilTheyExpireOrTheKeysChange() async throws {
    let key = TestIssuer.Key.p256("a", P256.Signing.PrivateKey())
    let server = try await KeyServer(.init(body: try TestIssuer.keySet([key])))
    try await run(.init(location: .url(server.url, trustRoots: nil))) { keys in
      let authenticator = TokenAuthenticator(
        hub: .default, rules: TokenRules(issuer: "i", audiences: ["f"]), policy: ScopePolicy(), keys: keys, clock: clock
      )
      func user(of token: String, hub: HubName = .default) async throws -> String? {
        try await authenticator.authenticate(.bearer(token), hub: hub, from: .unknown)?.user
      }
      func token(_ lifetime: Int64) throws -> String {
        let expiry = clock.now().seconds + lifetime
        return try TestIssuer.token(#"{"iss":"i","aud":"f","sub":"alice","exp":\#(expiry)}"#, key: key)
      }
      let short = try token(30)
      for _ in 0..<2 { #expect(try await user(of: short) == "alice") }
      clock.advance(by: .seconds(90))
      #expect(try await user(of: short) == nil, "expired, with the leeway of a minute")
      let long = try token(3600)
      #expect(try await user(of: long) != nil)
      server.answer(try keySet("b"))
      await advance(by: .seconds(900), keys)
      #expect(try await user(of: long) == nil, "its key was withdrawn")
      #expect(try await user(of: String(repeating: "a", count: 8193)) == nil)
    }
    try await server.close()
  }
}
