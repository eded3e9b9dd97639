import FanfareCore
import Foundation
import FrontEnd
import NIOHTTP1
import Support
import Testing

@testable import AzureHub

@Suite struct SharedAccessTests {
  private static let native = [("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-Tags", "news")]
  private static let alert = #"{"aps":{"alert":"hi"}}"#

  /// Made with Python's hmac module.
  @Test(arguments: [
    (
      "https%3a%2f%2fns.example.com%2forders%2fmessages%3fapi-version%3d2020-06",
      "ho3NOH60bVXv91Ufs%2ByV%2F6xP1f3nlX7X99bz9%2FlSZH8%3D"
    ),
    ("https%3A%2F%2Fns.example.com%2F", "YYZXK4hGlsHCoW3ERHmhqYuXl4cicCQKiwK7dSCUQ5Q%3D"),
  ])
  func knownSignaturesAreVerified(resource: String, signature: String) throws {
    let field = "SharedAccessSignature sig=\(signature)&se=1893456000&sr=\(resource)&skn=Full"
    let token = try #require(SharedAccessToken(field))
    #expect(token.isSigned(with: "h4Jf8Kz1oPt6Vy3mQ7wE"))
    #expect(!token.isSigned(with: "h4Jf8Kz1oPt6Vy3mQ7wF"))
    #expect(token.expiry == UnixTime(milliseconds: 1_893_456_000_000))
    #expect(token.covers(host: "NS.example.com:443", path: "/Orders/messages/", names: []))
    #expect(!token.covers(host: "other.example.com", path: "/orders/messages", names: []))
    #expect(token.covers(host: "10.0.0.1:8080", path: "/orders/messages", names: ["ns.example.com"]))
  }

  @Test func aSignatureCoversWholeComponentsOnly() throws {
    let token = try #require(
      SharedAccessToken("SharedAccessSignature sr=https%3a%2f%2fh%2forders&sig=AA==&se=1893456000&skn=Full"))
    #expect(token.covers(host: "h", path: "/orders", names: []))
    #expect(token.covers(host: "h", path: "/orders/messages", names: []))
    #expect(!token.covers(host: "h", path: "/orders2/messages", names: []))
    #expect(!token.covers(host: "h", path: "/", names: []))
  }

  @Test func allFormsOfTokensAreAccepted() async throws {
    try await AzureHarness.run { harness in
      let tokens: [AzureToken] = [
        .send, .send.with { $0.resource = .hub }, .send.with { $0.resource = .host },
        .send.with { $0.isUpperCase = true },
        .send.with { ($0.scheme, $0.resource) = ("https", .host) },
        .send.with { $0.order = ["sig", "se", "skn", "sr"] }, .full,
        .full.with { $0.key = "full-key-9876543210" }, .root,
      ]
      for token in tokens {
        let reply = try await harness.request(
          .POST, "/orders/messages?api-version=2015-01", as: token, headers: Self.native, body: Self.alert)
        #expect(reply.status == 201, "\(token) \(reply.text)")
      }
      #expect(try harness.sink.sends().count == tokens.count)
      #expect(Set(try harness.sink.sends().map(\.sender)) == ["sas/Send", "sas/Full", "sas/namespace/Root"])
    }
  }

  @Test func wrongTokensAreRefusedWithTheReason() async throws {
    try await AzureHarness.run { harness in
      let cases: [(AzureToken?, String, String)] = [
        (nil, "/orders", "MissingToken"), (.send.with { $0.key = "another-key" }, "/orders", "InvalidSignature"),
        (.send.with { $0.name = "Unknown" }, "/orders", "InvalidSignature"),
        (.send.with { $0.lifetime = .seconds(-1) }, "/orders", "ExpiredToken"),
        (.send.with { $0.order = ["sr", "sig", "se"] }, "/orders", "MalformedToken"),
        // A rule of another hub, and no hub at all.
        (.send, "/default", "InvalidSignature"), (.send, "/nowhere", "InvalidSignature"),
      ]
      for (token, hub, reason) in cases {
        let reply = try await harness.request(
          .POST, "\(hub)/messages", as: token, headers: Self.native, body: Self.alert)
        #expect(reply.status == 401)
        #expect(reply.text.hasPrefix("<Error><Code>401</Code><Detail>\(reason): "), "\(reply.text)")
        #expect(reply.text.contains(".TrackingId:"))
        #expect(reply["Content-Type"] == "application/xml; charset=utf-8")
      }
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test func aTokenForAnotherURLIsRefused() async throws {
    try await AzureHarness.run { harness in
      let field = AzureToken.send.text(for: "http://127.0.0.1:\(harness.port)/orders/tags/x", at: harness.clock.now())
      let reply = try await harness.request(
        .POST, "/orders/messages", as: nil, headers: Self.native + [("Authorization", field)], body: Self.alert)
      #expect(reply.status == 401)
    }
  }

  @Test func aRuleWithoutTheRightIsAnsweredWithoutABody() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages", as: .listen, headers: Self.native, body: Self.alert)
      #expect(reply.status == 403)
      #expect(reply.text.isEmpty)
      #expect(reply["Retry-After"] == nil)
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test func signaturesAreNoCredentialsForTheFrontEndsOwnRoutes() async throws {
    try await AzureHarness.run { harness in
      let path = "/hubs/orders/api/sends"
      let field = AzureToken.full.with { $0.resource = .host }
        .text(for: "http://127.0.0.1:\(harness.port)\(path)", at: harness.clock.now())
      // With the token the request counts as one of Azure's, where no hub has this name.
      let reply = try await harness.request(.GET, path, as: nil, headers: [("Authorization", field)])
      #expect(reply.status == 401)
      #expect(reply.text.hasPrefix("<Error>"))
    }
  }

  @Test(arguments: [
    ("Full Listen", "line 1"), ("# c\n\nFull Look k1k1k1k1k1k1k1k1", "line 3"), ("Full Listen short", "line 1"),
    ("A Listen 0123456789abcdef\nA Send 0123456789abcdef", "line 2"),
  ])
  func invalidRulesAreNamedByTheirLine(text: String, line: String) {
    #expect {
      try SharedAccessRules(parsing: text)
    } throws: { error in
      "\(error)".contains(line) && !"\(error)".contains("k1k1") && !"\(error)".contains("short")
    }
  }
}
