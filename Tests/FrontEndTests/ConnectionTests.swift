import FanfareCore
import HTTPTypes
import NIOCore
import NIOPosix
import Operations
import Support
import Synchronization
import Testing

@testable import FrontEnd
@testable import HTTPServer

/// The places for connections, and who gives way when they are taken.
@Suite(.timeLimit(.minutes(2))) struct ConnectionTests {
  private let missing = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
  private let last = "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

  private func configure(_ setup: inout Harness.Setup, places: Int) {
    setup.configuration.maximumConnections = places
    // Only the limits of connections may close one.
    setup.configuration.firstRequestTimeout = .seconds(3600)
    setup.configuration.idleTimeout = .seconds(3600)
  }

  @Test func idleConnectionsGiveWayToNewOnes() async throws {
    try await Harness.run({ configure(&$0, places: 4) }) { app in
      try await RawConnection.holding(Array(repeating: "", count: 12), port: app.port) {
        for _ in 0..<4 {
          let text = try await RawConnection.exchange(last, port: app.port)
          #expect(text.hasPrefix("HTTP/1.1 404"))
        }
      }
    }
  }

  /// A connection that is being added has no handlers yet: it would not learn that it has to give way.
  @Test func anotherConnectionGivesWayToTheOneThatIsBeingAdded() async throws {
    let table = ConnectionTable(maximum: 2, maximumPerAddress: 10)
    #expect(!table.hasRoom(beside: 2))
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    // Any channels that are open.
    let bootstrap = ServerBootstrap(group: loop)
    let channel = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
    let other = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
    let evictions = Atomic(0)
    try await loop.submit {
      let proxies = FrontEndConfiguration().proxies
      let oldest = ClientConnection(channel: other, proxies: proxies, requiresProxy: false)
      _ = table.add(ClientConnection(channel: channel, proxies: proxies, requiresProxy: false))
      try channel.pipeline.syncOperations.addHandler(EvictionCounter { evictions.add(1, ordering: .relaxed) })
      _ = table.add(oldest)
    }.get()
    #expect(evictions.load(ordering: .relaxed) == 1)
    try await channel.close()
    try await other.close()
  }

  /// A flood of strangers must not cost callers their connections.
  @Test func strangersGiveWayFirst() async throws {
    try await Harness.run({ configure(&$0, places: 4) }) { app in
      let request =
        "GET /api/registrations?user=alice HTTP/1.1\r\nHost: x\r\nAuthorization: \(Harness.basic("alice", "alice"))\r\n\r\n"
      try await RawConnection.converse(port: app.port) { exchange in
        #expect(try await exchange(request).head.hasPrefix("HTTP/1.1 200"))
        try await RawConnection.holding(Array(repeating: missing, count: 12), port: app.port) {
          // A stranger too: it may have to give way before its answer.
          var text = ""
          while text.isEmpty { text = try await RawConnection.exchangeUntilClosed(last, port: app.port) }
          #expect(text.hasPrefix("HTTP/1.1 404"))
        }
        #expect(try await exchange(request).head.hasPrefix("HTTP/1.1 200"))
      }
    }
  }

  @Test(arguments: [false, true]) func oneAddressHasALimitedNumberOfConnections(isProxy: Bool) async throws {
    try await Harness.run({
      configure(&$0, places: 100)
      $0.configuration.maximumConnectionsPerAddress = 2
      if isProxy { $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.0/8"])) }
    }) { app in
      try await RawConnection.converse(port: app.port) { first in
        _ = try await first(missing)
        try await RawConnection.converse(port: app.port) { second in
          _ = try await second(missing)
          let text = try await RawConnection.exchangeUntilClosed(last, port: app.port)
          #expect(text.hasPrefix("HTTP/1.1 404") == isProxy)
          _ = try await first(missing)
        }
      }
      // The places of closed connections are free again.
      var text = ""
      while text.isEmpty { text = try await RawConnection.exchangeUntilClosed(last, port: app.port) }
      #expect(text.hasPrefix("HTTP/1.1 404"))
    }
  }

  @Test(arguments: ["", "GET / HTTP/1.1\r\nHost"]) func newConnectionMustBeUsedSoon(text: String) async throws {
    try await Harness.run({
      $0.configuration.firstRequestTimeout = .seconds(1)
      $0.configuration.idleTimeout = .seconds(3600)
    }) { app in
      #expect(try await RawConnection.exchangeUntilClosed(text, port: app.port) == "")
      // A connection that was used may be idle for longer. On a busy machine some are closed before they are used.
      var isUsed = false
      while !isUsed {
        do {
          try await RawConnection.converse(port: app.port) { exchange in
            _ = try await exchange(missing)
            isUsed = true
            #expect(try await RawConnection.exchangeUntilClosed(text, port: app.port) == "")
            _ = try await exchange(missing)
          }
        } catch  where !isUsed {}
      }
    }
  }

  @Test func clientBehindATrustedProxyHasItsOwnAddress() throws {
    let proxies = try #require(TrustedProxies(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]))
    let proxy = try #require(ClientAddress("10.1.2.3"))
    for (field, address) in [
      (nil, "10.1.2.3"), ("", "10.1.2.3"), ("203.0.113.9", "203.0.113.9"),
      ("1.1.1.1, 203.0.113.9", "203.0.113.9"), ("203.0.113.9, 10.9.9.9", "203.0.113.9"),
      ("203.0.113.9,192.0.2.7 , 10.9.9.9", "203.0.113.9"), ("10.5.5.5", "10.5.5.5"),
      ("203.0.113.9:4711", "203.0.113.9"), ("[2001:db9::1]:80", "2001:db9::1"), ("2001:db9::1", "2001:db9::1"),
      ("203.0.113.9, 2001:db8::5", "203.0.113.9"), ("1.1.1.1, nonsense, 10.2.2.2", "10.2.2.2"),
    ] {
      let client = proxies.client(in: field, behind: proxy)
      #expect(client.description == address, "\(field ?? "none")")
    }
    for wrong in ["", "x", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::1/129", "10.0.0.0/8/8"] {
      #expect(TrustedProxies([wrong]) == nil, "\(wrong)")
    }
  }

  /// On a listener without TLS the credentials of other machines would travel in the clear.
  @Test(.enabled(if: Self.ownAddress != nil, "the machine has only loopback addresses"), arguments: [false, true])
  func plainListenerServesOnlyProxiesAndItsOwnMachine(isProxy: Bool) async throws {
    let own = try #require(Self.ownAddress)
    let seen = OriginRecorder()
    try await Harness.run({
      $0.configuration.host = "0.0.0.0"
      $0.configuration.proxies = try #require(TrustedProxies([isProxy ? own : "203.0.113.0/24"]))
      $0.hubs = [FrontEndHub(name: .default, authenticators: [seen])]
      $0.operations = OperationsRoutes(metrics: PrometheusMetrics(), health: HealthRegistry(readiness: []))
    }) { app in
      func answer(_ request: String, from host: String) async throws -> (head: String, body: String) {
        let text = "\(request) HTTP/1.1\r\nHost: x\r\nAuthorization: \(Harness.basic("alice", "x"))\r\n\r\n"
        return try await RawConnection.firstAnswer(to: text, host: host, port: app.port)
      }
      let direct = try await answer("GET /api/sends", from: own)
      #expect(direct.head.hasPrefix(isProxy ? "HTTP/1.1 401" : "HTTP/1.1 403"))
      #expect(direct.body.contains("api.proxies") == !isProxy)
      #expect(seen.origins == (isProxy ? [own] : []))
      for request in ["GET /openapi.json", "POST /healthz", "GET /nothing"] where !isProxy {
        #expect(try await answer(request, from: own).head.hasPrefix("HTTP/1.1 403"), "\(request)")
      }
      for probe in ["GET /healthz", "GET /readyz"] {
        #expect(try await answer(probe, from: own).head.hasPrefix("HTTP/1.1 200"), "\(probe)")
      }
      #expect(try await answer("GET /api/sends", from: "127.0.0.1").head.hasPrefix("HTTP/1.1 401"))
    }
  }

  /// An IPv4 address of this machine that is no loopback address.
  private static let ownAddress: String? = {
    // Without a list of devices the test does not run.
    let devices = (try? System.enumerateDevices()) ?? []
    return devices.compactMap { $0.address?.ipAddress }.first {
      guard let address = ClientAddress($0) else { return false }
      return address.isIPv4 && !address.isLoopback
    }
  }()

  @Test func loopbackAddressesAreRecognised() throws {
    for text in ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"] {
      #expect(try #require(ClientAddress(text)).isLoopback, "\(text)")
    }
    for text in ["126.255.255.255", "128.0.0.1", "::", "::2", "1::1", "10.0.0.1", "fe80::1"] {
      #expect(try !#require(ClientAddress(text)).isLoopback, "\(text)")
    }
  }

  /// Anybody can send the field.
  @Test(arguments: [false, true]) func forwardedAddressIsBelievedFromProxiesOnly(isProxy: Bool) async throws {
    let seen = OriginRecorder()
    try await Harness.run({
      if isProxy { $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1"])) }
      $0.hubs = [FrontEndHub(name: .default, authenticators: [seen])]
    }) { app in
      _ = try await app.request(.get, "/api/sends", headers: [("X-Forwarded-For", "203.0.113.9")])
      #expect(seen.origins == [isProxy ? "203.0.113.9" : "127.0.0.1"])
    }
  }
}

/// Counts requests to give way.
private final class EvictionCounter: ChannelInboundHandler {
  typealias InboundIn = NIOAny

  private let note: () -> Void

  init(_ note: @escaping () -> Void) { self.note = note }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) { if event is Eviction { note() } }
}
