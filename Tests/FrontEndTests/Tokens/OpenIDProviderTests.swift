import AsyncHTTPClient
import FanfareCore
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// A front end with the tokens of a real OpenID provider, which `deploy/test` installs.
@Suite(.enabled(if: OpenIDProvider.isInstalled), .timeLimit(.minutes(2))) struct OpenIDProviderTests {
  @Test func keysAreRotatedUnderLoad() async throws {
    let provider = try await OpenIDProvider()
    defer { provider.stop() }
    // Tokens have the provider's time. Only the minute between two refreshes is the test's.
    let clock = ManualClock(at: SystemWallClock().now())
    let keys = TokenKeys(
      .init(location: .url("\(provider.issuer)/jwks", trustRoots: nil)), clock: clock, logger: TestKafka.quietLogger)
    let authenticator = TokenAuthenticator(
      hub: .default, rules: TokenRules(issuer: provider.issuer, audiences: ["fanfare"]), policy: ScopePolicy(),
      keys: keys, clock: clock)
    try await Harness.run({ $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])] }) { app in
      let load = Load(token: try await provider.token(for: "alice"))
      try await withThrowingTaskGroup { group in
        group.addTask { try await keys.run() }
        for _ in 0..<8 {
          group.addTask {
            while !Task.isCancelled {
              let token = load.token
              let reply = try await app.list(token)
              load.count(reply.status)
              // A token is refused only after its key was replaced.
              #expect(reply.status == 200 || (reply.status == 401 && token != load.token))
            }
          }
        }
        for _ in 0..<4 {
          let old = load.token
          #expect(try await app.list(old).status == 200)
          // From here until the new token is current, the load's token has a key that the provider does not know; it
          // stays valid as long as nobody presents a token with a new key.
          try await provider.rotate()
          clock.advance(by: .seconds(60))
          let new = try await provider.token(for: "alice")
          load.replace(new)
          #expect(try await app.list(new).status == 200, "the new key is fetched at once")
          let refused = try await app.list(old)
          #expect(refused.status == 401)
          #expect(refused.headers["WWW-Authenticate"] == [#"Bearer realm="fanfare", error="invalid_token""#])
        }
        group.cancelAll()
        while let result = await group.nextResult() {
          if case .failure(let error) = result, !(error is CancellationError) { throw error }
        }
      }
      #expect(load.answers[200] ?? 0 > 0)
      #expect(Set(load.answers.keys).isSubset(of: [200, 401]))
    }
  }
}

/// The token that the load presents, and the answers to it.
private final class Load: Sendable {
  private struct State {
    var token: String
    var answers: [Int: Int] = [:]
  }

  private let state: Mutex<State>

  init(token: String) { state = Mutex(State(token: token)) }

  var token: String { state.withLock(\.token) }
  /// The number of answers by status.
  var answers: [Int: Int] { state.withLock(\.answers) }

  func replace(_ token: String) { state.withLock { $0.token = token } }
  func count(_ status: Int) { state.withLock { $0.answers[status, default: 0] += 1 } }
}

extension Harness {
  /// Lists the sends of a token's user.
  fileprivate func list(_ token: String) async throws -> Reply {
    try await request(.get, "/api/sends", as: nil, headers: [("Authorization", "Bearer \(token)")])
  }
}

/// A running OpenID provider (the Python package `oidc-provider-mock`) that issues ID tokens to the client `fanfare`.
private struct OpenIDProvider {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let python = root.appending(path: ".build/openid-provider/bin/python")

  static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: python.path) }

  let issuer: String
  private let process: Process
  private let input: Pipe

  init() async throws {
    let (process, input, output) = (Process(), Pipe(), Pipe())
    process.executableURL = Self.python
    process.arguments = [
      URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "openid-provider.py").path
    ]
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // On a thread of its own: reading blocks.
    let line = await withCheckedContinuation { continuation in
      Thread { continuation.resume(returning: output.fileHandleForReading.availableData) }.start()
    }
    let port = try #require(Int(String(decoding: line, as: UTF8.self).filter(\.isNumber)))
    issuer = "http://127.0.0.1:\(port)"
    (self.process, self.input) = (process, input)
  }

  /// The provider ends when its standard input ends.
  func stop() {
    // A closed pipe is closed.
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Replaces the signing key. The key set has the new key only.
  func rotate() async throws { _ = try await post("/rotate", "") }

  /// Logs a user in (authorization code flow), and returns the ID token.
  func token(for user: String) async throws -> String {
    let redirect = "http://127.0.0.1/done"
    let answer = try await post(
      "/oauth2/authorize?client_id=fanfare&redirect_uri=\(redirect)&response_type=code&scope=openid&state=s",
      "sub=\(user)")
    let location = try #require(answer.headers.first(name: "location"))
    let code = try #require(URLComponents(string: location)?.queryItems?.first { $0.name == "code" }?.value)
    let granted = try await post(
      "/oauth2/token",
      "grant_type=authorization_code&code=\(code)&redirect_uri=\(redirect)&client_id=fanfare&client_secret=x")
    struct Grant: Decodable { let id_token: String }
    return try JSONDecoder().decode(Grant.self, from: Data(granted.body)).id_token
  }

  private func post(_ path: String, _ form: String) async throws -> Reply {
    var request = HTTPClientRequest(url: issuer + path)
    request.method = .POST
    request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
    request.body = .bytes(ByteBuffer(string: form))
    let client = HTTPClient(
      eventLoopGroupProvider: .singleton, configuration: .init(redirectConfiguration: .disallow))
    do {
      let response = try await client.execute(request, timeout: .seconds(30))
      let body = try await response.body.collect(upTo: 1024 * 1024)
      try await client.shutdown()
      return Reply(status: Int(response.status.code), headers: response.headers, body: Array(body.readableBytesView))
    } catch {
      // The first error is the test's.
      try? await client.shutdown()
      throw error
    }
  }
}
