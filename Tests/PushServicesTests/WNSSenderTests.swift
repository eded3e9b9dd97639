import AsyncHTTPClient
import FanfareCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Support
import Synchronization
import Testing

@testable import PushServices

@Suite(.timeLimit(.minutes(2))) struct WNSSenderTests {
  private static let certificates = Result { try TestCertificates() }
  private static let store = WNSConfiguration.Flow.store(packageSID: "ms-app://s-1-15-2-1", secret: "s&cret+/=")
  private static let channel = "https://wns2-by3p.notify.windows.com/?token=AwYAAAB%2bx%2F%2f%3d%3D&x=a%20b+c"
  private let clock = ManualClock(at: Fixtures.now)

  private func server(
    _ answer: @escaping @Sendable (HTTP1Server.Request) -> HTTP1Server.Response? = { _ in
      .init(status: .ok, headers: ["X-WNS-Status": "received"])
    }
  ) async throws -> HTTP1Server {
    try await HTTP1Server(Self.certificates.get()) { request in
      request.head.uri.hasPrefix("/token")
        ? .init(status: .ok, body: #"{"token_type":"Bearer","expires_in":"86399","access_token":"EgA1"}"#)
        : answer(request)
    }
  }

  private func sender(
    _ server: HTTP1Server, flow: WNSConfiguration.Flow = store, log: LogRecorder = LogRecorder(),
    _ change: (inout WNSConfiguration) -> Void = { _ in }
  ) throws -> WNSSender {
    var configuration = WNSConfiguration(flow: flow)
    configuration.tokenEndpoint = "https://localhost:\(server.port)/token"
    configuration.connectTo = ("localhost", server.port)
    configuration.trustRoots = try Self.certificates.get().authorityPEM
    configuration.requestTimeout = Patience.answer
    change(&configuration)
    return try WNSSender(configuration, SenderResources(clock: clock, logger: log.logger))
  }

  private func push(_ sender: WNSSender, ticket: UInt64 = 1, handle: String = channel) throws -> Push {
    Push(
      ticket: ticket, id: Fixtures.pushID, handle: handle,
      rendering: try sender.render(Fixtures.send(Message(body: "hello"), collapseKey: "score")),
      expiresAt: clock.now() + .seconds(60))
  }

  private func pushes(_ server: HTTP1Server) -> [HTTP1Server.Request] {
    server.requests.filter { !$0.head.uri.hasPrefix("/token") }
  }

  @Test func requestArrivesAsDocumented() async throws {
    let server = try await server()
    try await Outcomes.running(sender(server)) { sender in
      expectEqual(try await Outcomes.submit([push(sender)], to: sender), [PushOutcome(.accepted, status: 200)])
      #expect(sender.readinessProblem == nil)
    }
    let token = try #require(server.requests.first)
    #expect(
      token.body
        == "grant_type=client_credentials&client_id=ms-app%3A%2F%2Fs-1-15-2-1&client_secret=s%26cret%2B%2F%3D&scope=notify.windows.com"
    )
    let request = try #require(pushes(server).first)
    #expect(request.head.method == .POST)
    // Byte for byte as registered.
    #expect(request.head.uri == "/?token=AwYAAAB%2bx%2F%2f%3d%3D&x=a%20b+c")
    let fields = Dictionary(request.head.headers.map { ($0.name.lowercased(), $0.value) }) { $0 + "," + $1 }
    #expect(
      fields == [
        "host": "wns2-by3p.notify.windows.com", "authorization": "Bearer EgA1", "content-type": "text/xml",
        "content-length": String(request.body.utf8.count), "x-wns-type": "wns/toast", "x-wns-priority": "1",
        "x-wns-tag": "score",
        "x-wns-ttl": "60", "ms-cv": "EREiIjMzhESFVWZmd3eIiA.0",
      ])
    #expect(request.body.contains("<text>hello</text>"))
    try await server.close()
  }

  @Test func entraFlowFetchesItsToken() async throws {
    let server = try await server()
    let flow = WNSConfiguration.Flow.entra(tenant: "t", applicationID: "app", secret: "s")
    try await Outcomes.running(sender(server, flow: flow)) { sender in
      expectEqual(try await Outcomes.verdicts([push(sender)], to: sender), [.accepted])
    }
    #expect(
      server.requests.first?.body
        == "grant_type=client_credentials&client_id=app&client_secret=s&scope=https%3A%2F%2Fwns.windows.com%2F.default")
    #expect(
      WNSTokenRequest(WNSConfiguration(flow: flow)).url == "https://login.microsoftonline.com/t/oauth2/v2.0/token")
    #expect(WNSTokenRequest(WNSConfiguration(flow: Self.store)).url == "https://login.live.com/accesstoken.srf")
    try await server.close()
  }

  @Test(arguments: [
    "https://evil.example/?token=x", "https://notify.windows.com.evil.example/?token=x",
    "https://evilnotify.windows.com/",
    "http://cloud.notify.windows.com/?token=x", "https://u@cloud.notify.windows.com/",
    "https://cloud.notify.windows.com:8443/",
    "https://cloud.notify.windows.com/?token=a b", "https://cloud.notify.windows.com/?token=%zz", "x",
  ])
  func handlesThatAreNoChannelsGetNoRequest(handle: String) async throws {
    let server = try await server()
    try await Outcomes.running(sender(server)) { sender in
      expectEqual(
        try await Outcomes.submit([push(sender, handle: handle)], to: sender),
        [PushOutcome(.deviceGone, reason: "BadChannelURI")]
      )
    }
    #expect(pushes(server).isEmpty)
    try await server.close()
  }

  @Test func everyAnswerHasItsOutcome() async throws {
    let server = try await server { request in
      switch request.head.uri {
      case "/?token=gone": .init(status: .gone, body: "expired")
      case "/?token=blocked": .init(status: .gone, headers: ["X-WNS-Error-Description": "Domain Blocked"])
      case "/?token=slow": .init(status: .notAcceptable, headers: ["Retry-After": "30"])
      case "/?token=foreign": .init(status: .forbidden)
      case "/?token=elsewhere": .init(status: .movedPermanently, headers: ["Location": "https://localhost/"])
      case "/?token=big": .init(status: .badRequest, body: String(repeating: "x", count: 100_000))
      case "/?token=throttled": .init(status: .ok, headers: ["X-WNS-Status": "channelthrottled"])
      default: .init(status: .ok, headers: ["X-WNS-Status": "received"])
      }
    }
    let log = LogRecorder()
    try await Outcomes.running(sender(server, log: log)) { sender in
      func outcome(_ token: String) async throws -> PushOutcome {
        let handle = "https://cloud.notify.windows.com/?token=" + token
        return try #require(try await Outcomes.submit([push(sender, handle: handle)], to: sender).first)
      }
      // One channel of another app does not mean that the sender is broken.
      for _ in 0..<3 {
        expectEqual(try await outcome("foreign"), PushOutcome(.retryLater, reason: "Forbidden", status: 403))
      }
      #expect(sender.readinessProblem == nil)
      #expect(log.count(of: "WNS refused a channel before it accepted any push") == 1)
      expectEqual(try await outcome("blocked").reason, "DomainBlocked")
      #expect(sender.readinessProblem == "WNS answers DomainBlocked")
      expectEqual(try await outcome("good").verdict, .accepted)
      #expect(sender.readinessProblem == nil)
      expectEqual(try await outcome("foreign").verdict, .deviceGone)
      expectEqual(try await outcome("gone").verdict, .deviceGone)
      expectEqual(try await outcome("slow").retryAfter, .seconds(30))
      expectEqual(try await outcome("elsewhere").verdict, .malformed)
      expectEqual(try await outcome("big"), PushOutcome(.unknown, reason: "ResponseTooLarge"))
      expectEqual(try await outcome("throttled").reason, "channelthrottled")
      // Nor does one that is refused beside others.
      expectEqual(try await outcome("blocked").reason, "DomainBlocked")
      #expect(sender.readinessProblem == nil)
    }
    try await server.close()
  }

  @Test func malformedMessageIsLoggedOnce() async throws {
    let server = try await server { _ in .init(status: .badRequest) }
    let log = LogRecorder()
    try await Outcomes.running(sender(server, log: log)) { sender in
      let pushes = try (0..<100).map { try push(sender, ticket: $0) }
      expectEqual(try await Outcomes.verdicts(pushes, to: sender), Array(repeating: .malformed, count: 100))
    }
    #expect(log.count(of: "Push service rejected a request as malformed") == 1)
    try await server.close()
  }

  @Test func manyPushesShareFewConnections() async throws {
    let server = try await server()
    try await Outcomes.running(sender(server) { $0.maximumConnections = 3 }) { sender in
      let pushes = try (0..<50).map { try push(sender, ticket: $0) }
      expectEqual(try await Outcomes.verdicts(pushes, to: sender), Array(repeating: .accepted, count: 50))
    }
    #expect(pushes(server).count == 50)
    #expect((1...4).contains(server.connectionCount))
    try await server.close()
  }

  @Test func pushesBeyondTheQueueLimitAreReturned() async throws {
    let server = try await server()
    let sender = try sender(server) { $0.maximumQueuedPushes = 2 }
    let pushes = try (0..<3).map { try push(sender, ticket: $0) }
    expectEqual(
      try await Outcomes.submit(pushes, to: sender),
      Array(repeating: PushOutcome(.retryLater, reason: "QueueFull"), count: 3))
    try await server.close()
  }

  /// Requests for connections that end during setup have certainly not been seen; there is one log line.
  @Test func pushWithoutConnectionIsNotUnknown() async throws {
    let server = try await server()
    let connections = Mutex(0)
    let closing = try await listener {
      connections.withLock { $0 += 1 }
      try $0.pipeline.syncOperations.addHandler(ResettingHandler())
    }
    let port = try #require(closing.localAddress?.port)
    let log = LogRecorder()
    try await Outcomes.running(sender(server, log: log) { $0.connectTo = ("localhost", port) }) { sender in
      for _ in 0..<3 {
        let outcomes = try await Outcomes.submit((0..<20).map { try push(sender, ticket: $0) }, to: sender)
        #expect(outcomes == Array(repeating: PushOutcome(.retryLater, reason: "NotSent"), count: 20))
      }
      #expect(sender.readinessProblem == "cannot connect to WNS")
      try await closing.close()
      expectEqual(try await Outcomes.submit([push(sender)], to: sender), [PushOutcome(.retryLater, reason: "NotSent")])
    }
    // No push waited while the client retried.
    #expect(connections.withLock { $0 } <= 60)
    #expect(log.count(of: "Push service unreachable") == 1)
    try await server.close()
  }

  /// The client fails all waiting requests when it cannot make one of its connections.
  @Test func oneFailedConnectionDelaysNoOtherPush() async throws {
    let server = try await server()
    let resetting = try await HTTP1Server(Self.certificates.get(), resetting: 2) { _ in .init(status: .ok) }
    try await Outcomes.running(sender(server) { $0.connectTo = ("localhost", resetting.port) }) { sender in
      expectEqual(try await Outcomes.verdicts([push(sender)], to: sender), [.accepted])
      let pushes = try (0..<20).map { try push(sender, ticket: $0) }
      expectEqual(try await Outcomes.verdicts(pushes, to: sender), Array(repeating: .accepted, count: 20))
      #expect(sender.readinessProblem == nil)
    }
    #expect(resetting.connectionCount > 1)
    try await resetting.close()
    try await server.close()
  }

  /// A name lookup may end after its client.
  @Test func threadOutlivesItsClient() async throws {
    let (loops, used) = AsyncStream.makeStream(of: (any EventLoop).self)
    await HTTPClient.withPushService(tls: .makeClientConfiguration(), maximumConnectionsPerHost: 1) { client in
      used.yield(client.eventLoopGroup.any())
    }
    for await loop in loops {
      expectEqual(try await loop.submit { 7 }.get(), 7)
      break
    }
  }

  @Test func pushWithoutConnectionInTimeIsNotUnknown() async throws {
    let server = try await server()
    let connections = Mutex<[any Channel]>([])
    let silent = try await listener { channel in connections.withLock { $0.append(channel) } }
    let port = try #require(silent.localAddress?.port)
    try await Outcomes.running(
      sender(server) {
        $0.connectTo = ("localhost", port)
        $0.requestTimeout = Patience.silence
      }
    ) { sender in
      var outcome = PushOutcome(.retryLater, reason: "TokenUnavailable")
      // On a busy machine the token may take longer.
      let end = ContinuousClock.now + Patience.event
      while outcome.reason == "TokenUnavailable", ContinuousClock.now < end {
        clock.advance(by: .seconds(60))
        outcome = try await Outcomes.submit([push(sender)], to: sender)[0]
      }
      #expect(outcome == PushOutcome(.retryLater, reason: "NotSent"))
      // The client waits for connections that it has started to open.
      try await silent.close()
      for connection in connections.withLock({ $0 }) { connection.close(promise: nil) }
    }
    try await server.close()
  }

  /// Accepts connections and sends nothing.
  private func listener(_ connected: @escaping @Sendable (any Channel) throws -> Void) async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in channel.eventLoop.makeCompletedFuture { try connected(channel) } }
      .bind(host: "127.0.0.1", port: 0).get()
  }

  @Test func silenceIsUnknownOutcome() async throws {
    let server = try await server { $0.head.uri == "/?token=silent" ? nil : .init(status: .ok) }
    try await Outcomes.running(sender(server) { $0.requestTimeout = Patience.silence }) { sender in
      try await Outcomes.warmUp(sender) {
        // A token that did not come in time is asked for again after a pause.
        clock.advance(by: .seconds(60))
        return try push(sender)
      }
      expectEqual(
        try await Outcomes.submit([push(sender, handle: "https://cloud.notify.windows.com/?token=silent")], to: sender),
        [PushOutcome(.unknown, reason: "DeadlineExceeded")])
    }
    try await server.close()
  }

  @Test func closedSenderAcceptsNothing() async throws {
    let server = try await server()
    let sender = try sender(server)
    try await Outcomes.running(sender) { _ in }
    expectEqual(try await Outcomes.submit([push(sender)], to: sender), [PushOutcome(.retryLater, reason: "Closed")])
    try await server.close()
  }
}
