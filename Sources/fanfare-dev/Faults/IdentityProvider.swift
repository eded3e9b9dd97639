import Crypto
import FanfareCore
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// An identity provider in this process that can go down and rotate its key: a key set over HTTP, and tokens.
final class IdentityProvider: Sendable {
  private struct State {
    var key = P256.Signing.PrivateKey()
    var number = 1
    var isUp = true
    var requests = 0
  }

  private static let issuer = "https://identity.example"
  private static let audience = "fanfare"

  private let state = Mutex(State())
  private let listener = Mutex<(any Channel)?>(nil)

  /// Starts a provider on a free port.
  static func start() async throws -> IdentityProvider {
    let provider = IdentityProvider()
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(provider))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    provider.listener.withLock { $0 = channel }
    return provider
  }

  private init() {}

  /// The settings of front ends that accept its tokens, as environment variables.
  var settings: [String: String] {
    let prefix = "FANFARE_HUB_DEFAULT_AUTHENTICATION_TOKEN_"
    let port = listener.withLock { $0?.localAddress?.port ?? 0 }
    return [
      prefix + "ISSUER": Self.issuer, prefix + "AUDIENCE": Self.audience,
      prefix + "KEYS_URL": "http://127.0.0.1:\(port)/keys",
    ]
  }

  /// The number of requests for the key set while it was up.
  var requests: Int { state.withLock { $0.requests } }

  /// While it is down, connections are closed without an answer.
  func set(isUp: Bool) { state.withLock { $0.isUp = isUp } }

  /// Replaces the key. The key set has the new key only.
  func rotate() {
    state.withLock { state in
      state.key = P256.Signing.PrivateKey()
      state.number += 1
    }
  }

  /// Issues a token with the present key.
  func token(for user: String) throws -> String {
    try state.withLock { state in
      let expiry = SystemWallClock().now().seconds + 3600
      let signed =
        Self.base64URL(#"{"alg":"ES256","typ":"JWT","kid":"\#(state.number)"}"#.utf8) + "."
        + Self.base64URL(#"{"iss":"\#(Self.issuer)","aud":"\#(Self.audience)","sub":"\#(user)","exp":\#(expiry)}"#.utf8)
      return signed + "." + Self.base64URL(try state.key.signature(for: Data(signed.utf8)).rawRepresentation)
    }
  }

  func close() { listener.withLock { $0 }?.close(promise: nil) }

  private func keySet() -> String? {
    state.withLock { state in
      guard state.isUp else { return nil }
      state.requests += 1
      let point = Array(state.key.publicKey.rawRepresentation)
      let (x, y) = (Self.base64URL(point[..<32]), Self.base64URL(point[32...]))
      return
        #"{"keys":[{"kty":"EC","crv":"P-256","use":"sig","kid":"\#(state.number)","x":"\#(x)","y":"\#(y)"}]}"#
    }
  }

  private static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let provider: IdentityProvider

    init(_ provider: IdentityProvider) { self.provider = provider }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .end = unwrapInboundIn(data) else { return }
      guard let keys = provider.keySet() else { return context.close(promise: nil) }
      let headers: HTTPHeaders = ["content-length": "\(keys.utf8.count)", "content-type": "application/json"]
      context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: .ok, headers: headers))), promise: nil)
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: keys)))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
  }
}

/// The fault row of an identity provider that goes down and rotates its key.
enum RotatedKeys {
  static let scenario = FaultScenario(
    "the identity provider down, and its key rotated", isQuick: true, needs: [.identityProvider]
  ) { deployment, isQuick in
    let provider = try await deployment.provider
    let old = try provider.token(for: "sender")
    try await expect([200, 201, 202], old, "a valid token", deployment)
    provider.set(isUp: false)
    provider.rotate()
    let new = try provider.token(for: "sender")
    // Nobody can tell yet whether the new key is the provider's.
    try await expect([503], new, "a token with an unknown key while the provider is down", deployment)
    for _ in 0..<(isQuick ? 20 : 100) {
      try await expect([200, 201, 202], old, "a token with a known key while the provider is down", deployment)
      try await Task.sleep(for: .milliseconds(100))
    }
    provider.set(isUp: true)
    // The backoff of the front ends may have grown to a minute.
    let deadline = ContinuousClock.now + .seconds(90)
    while ContinuousClock.now < deadline, try await !accept(new, deployment) {
      try await Task.sleep(for: .milliseconds(100))
    }
    await deployment.noteHealed()
    try await expect([200, 201, 202], new, "a token with the new key", deployment)
    try await expect([401], old, "a token with the withdrawn key", deployment)
    guard provider.requests <= 4 else {
      throw BenchError("two front ends fetched the key set \(provider.requests) times instead of twice each")
    }
    return []
  }

  /// Posts a send with the token to every front end. Throws unless all answer with one of the statuses.
  private static func expect(
    _ expected: [Int], _ token: String, _ what: String, _ deployment: FaultDeployment
  ) async throws {
    for status in try await statuses(token, deployment) where !expected.contains(status) {
      throw BenchError("\(what) was answered \(status) instead of \(expected[0])")
    }
  }

  private static func accept(_ token: String, _ deployment: FaultDeployment) async throws -> Bool {
    try await statuses(token, deployment).allSatisfy { $0 < 300 }
  }

  private static func statuses(_ token: String, _ deployment: FaultDeployment) async throws -> [Int] {
    var statuses: [Int] = []
    for frontEnd in await deployment.frontEnds {
      do {
        _ = try await frontEnd.request(
          "POST", "/api/sends", authorization: "Bearer \(token)",
          body: #"{"to":{"user":"user-1"},"message":{"body":"with a token"}}"#)
        statuses.append(200)
      } catch let refusal as APIClient.Refusal {
        statuses.append(refusal.status)
      }
    }
    return statuses
  }
}
