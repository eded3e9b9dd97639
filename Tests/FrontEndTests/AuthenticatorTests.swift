import FanfareCore
import Foundation
import HTTPServer
import NIOHTTP1
import Testing

@testable import FrontEnd

@Suite struct AuthenticatorTests {
  @Test func demoAuthenticatorRefusesToServeOtherMachinesUnlessAllowed() throws {
    for host in ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LOCALHOST"] {
      _ = try DemoAuthenticator(boundTo: host)
    }
    for host in [
      "0.0.0.0", "::", "", "192.168.1.1", "127.0.0.1.example.com", "127.0.0", "127.0.0.256", "localhost.example.com",
      "128.0.0.1",
      "::ffff:1.2.3.4",
      " 127.0.0.1",
    ] {
      let error = #expect(throws: FrontEndError.self) { try DemoAuthenticator(boundTo: host) }
      #expect(error?.code == .insecureAuthentication)
      _ = try DemoAuthenticator(boundTo: host, allowRemote: true)
    }
  }

  @Test func demoAuthenticatorAcceptsPasswordEqualToName() async throws {
    let policy = ScopePolicy(users: ["opal": [.operate], "zo\u{eb}": [.readAll]], groups: ["ops": [.sendTag]])
    #expect(policy.scopes(of: "alice", groups: ["ops", "others"]) == [.device, .sendUser, .sendTag])
    let authenticator = try DemoAuthenticator(boundTo: "127.0.0.1", policy: policy)
    for (user, password, scopes) in [
      ("alice", "alice", [.device, .sendUser]), ("opal", "opal", [.device, .sendUser, .operate]),
      ("zo\u{eb}", "zo\u{eb}", [.device, .sendUser, .readAll]),
      // Unicode-equivalent, but a different user.
      ("zoe\u{308}", "zoe\u{308}", [.device, .sendUser]), ("zoe\u{308}", "zo\u{eb}", nil),
      ("alice", "Alice", nil), ("alice", "", nil), ("alice", "alice ", nil),
    ] as [(String, String, Set<Scope>?)] {
      let credentials = Credentials.basic(try #require(BasicCredentials(user: user, password: password)))
      #expect(try await authenticator.authenticate(credentials, hub: .default, from: .unknown)?.scopes == scopes)
    }
    #expect(try await authenticator.authenticate(.bearer("alice"), hub: .default, from: .unknown) == nil)
  }

  /// Accepts one token.
  private struct OneToken: Authenticator {
    let challenge = #"Bearer realm="fanfare""#
    let token: String

    func authenticate(
      _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
    ) async throws -> Principal? {
      credentials == .bearer(token) ? Principal(user: "backend", scopes: [.sendUser]) : nil
    }
  }

  @Test func hubAsksItsAuthenticatorsInOrderAndStatesAllChallenges() async throws {
    let sink = RecordingSink()
    let shop = try #require(HubName("shop"))
    try await Harness.run({
      $0.sink = sink
      $0.hubs = [
        FrontEndHub(
          name: .default,
          authenticators: [OneToken(token: "t-1"), Harness.authenticator, OneToken(token: "t-2")]),
        FrontEndHub(name: shop, authenticators: [Harness.authenticator]),
      ]
    }) { app in
      func send(_ authorization: String?, to root: String = "") async throws -> Reply {
        try await app.request(
          .post, "\(root)/api/sends", as: nil, body: #"{"to":{"user":"bob"},"message":{"body":"b"}}"#,
          headers: authorization.map { [("Authorization", $0)] } ?? [])
      }
      for authorization in ["Bearer t-1", "Bearer t-2", Harness.basic("alice", "alice")] {
        #expect(try await send(authorization).status == 202)
      }
      #expect(try sink.sends().map(\.sender) == ["backend", "backend", "alice"])
      for (authorization, root) in [
        (nil, ""), ("Bearer t-3", ""), (Harness.basic("alice", "x"), ""), ("Bearer t-1", "/hubs/shop"),
        ("Bearer t-1", "/hubs/other"),
      ] as [(String?, String)] {
        let reply = try await send(authorization, to: root)
        reply.expectProblem(401, "unauthenticated")
        let isToken = authorization?.hasPrefix("Bearer") == true
        let bearer = #"Bearer realm="fanfare""# + (isToken ? #", error="invalid_token""# : "")
        #expect(
          reply.headers["WWW-Authenticate"] == [bearer, BasicCredentials.challenge], "those of all hubs, each once")
      }
    }
  }

  @Test func basicCredentialsAreSplitAtTheFirstColon() {
    func read(_ text: String) -> BasicCredentials? {
      BasicCredentials("Basic " + Data(text.utf8).base64EncodedString())
    }
    #expect(read("a:b:c") == BasicCredentials(user: "a", password: "b:c"))
    #expect(read("René:") == BasicCredentials(user: "René", password: ""))
    for wrong in [
      "", "a", ":b", "a\n:b", "a:b\u{0}c", "a:" + String(repeating: "x", count: 512),
      String(repeating: "x", count: 112) + ":",
    ] {
      #expect(read(wrong) == nil)
    }
    #expect("\(String(describing: read("alice:secret")))".contains("secret") == false)
    #expect("\(String(describing: read("alice:secret")))".contains("alice") == false)
  }

  @Test func bearerTokensAreReadAndBounded() {
    for field in ["Bearer a.b-c_~+/=", "bearer   a.b-c_~+/="] {
      #expect(Credentials(field) == .bearer("a.b-c_~+/="))
    }
    #expect(Credentials("Bearer " + String(repeating: "a", count: 8192)) != nil)
    for field in ["Bearer", "Bearer ", "Bearer a b", "Bearer a,b", "Bearer é", "Bearers a", "Digest a"] {
      #expect(Credentials(field) == nil)
    }
    #expect(Credentials("Bearer " + String(repeating: "a", count: 8193)) == nil)
    #expect(!"\(Credentials.bearer("secret"))".contains("secret"))
  }

  @Test func addressesAreReadWrittenAndGroupedByNetwork() throws {
    for (text, written, network) in [
      ("192.0.2.1", "192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
      ("2001:DB8::1", "2001:db8::1", "2001:db8::"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
      ("::1", "::1", "::"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1", "2001:0:0:1::"),
      ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1", "2001:db8:0:1::"),
    ] {
      let address = try #require(ClientAddress(text))
      #expect(address.description == written && address.network.description == network, "\(text)")
    }
    for text in ["", "localhost", "192.0.2", "192.0.2.1:80", "[::1]", "1.2.3.4, 5.6.7.8"] {
      #expect(ClientAddress(text) == nil, "\(text)")
    }
  }
}
