import FanfareCore
import FrontEnd
import NIOHTTP1
import Synchronization
import Testing

@testable import AzureHub

/// The update of a hub's credentials over a real socket.
struct HubUpdateTests {
  /// Keeps what it gets.
  private final class Store: HubCredentialStore {
    let given = Mutex<[HubCredential]>([])

    func replace(_ credentials: [HubCredential]) async throws -> [Platform] {
      for credential in credentials where credential["Token"] == "wrong" {
        throw Refusal(.invalidField, "\(credential.name).Token must be a key")
      }
      given.withLock { $0 += credentials }
      return credentials.map(\.platform)
    }

    func identities() async -> [HubCredential] {
      [
        HubCredential(.wns, name: "WnsCredential", ["packagesid": "ms-app://1", "secretkey": "secret"]),
        HubCredential(
          .apns, name: "ApnsCredential", ["keyid": "ABCDEFGHIJ", "appid": "TEAM", "token": "secret", "appname": "a.b"]),
        HubCredential(.fcm, name: "FcmV1Credential", ["projectid": "p & q"]),
      ]
    }
  }

  private static func body(_ content: String) -> String {
    """
    <?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
    <NotificationHubDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
    xmlns:i="http://www.w3.org/2001/XMLSchema-instance">\(content)</NotificationHubDescription></content></entry>
    """
  }

  private static func credential(_ name: String, _ properties: [(String, String)]) -> String {
    let list = properties.map { "<Property><Name>\($0)</Name><Value>\($1)</Value></Property>" }.joined()
    return "<\(name)><Properties>\(list)</Properties></\(name)>"
  }

  private func run(_ body: (AzureHarness, Store) async throws -> Void) async throws {
    let (store, hub) = (Store(), try #require(HubName("orders")))
    try await AzureHarness.run({
      $0.configuration.credentials = [hub: store, .default: store]
      $0.configuration.changeable = [hub]
    }) { try await body($0, store) }
  }

  @Test func credentialsOfADescriptionAreReplaced() async throws {
    try await run { harness, store in
      let content =
        Self.credential("ApnsCredential", [("KeyId", "ABCDEFGHIJ"), ("token", " abc= "), ("Endpoint", "")])
        + "<RegistrationTtl>P10675199DT2H48M5.4775807S</RegistrationTtl><WnsCredential i:nil=\"true\" />"
        + "<AuthorizationRules/><GcmCredential><Properties/></GcmCredential><DailyOperations>5</DailyOperations>"
        + Self.credential("FcmV1Credential", [("PrivateKey", "-----BEGIN&#10;x")])
      let reply = try await harness.request(
        .PUT, "/Orders?api-version=2020-06", as: .full, headers: [("If-Match", "*")], body: Self.body(content))
      #expect(reply.status == 200, "\(reply.text)")
      #expect(reply.text.contains("NotificationHubDescription") && !reply.text.contains("abc="))
      let given = store.given.withLock { $0 }
      #expect(given.map(\.platform) == [.apns, .fcm])
      #expect(given[0]["Token"] == "abc=" && given[0]["KeyId"] == "ABCDEFGHIJ" && given[0]["Endpoint"] == nil)
      #expect(given[1]["PrivateKey"] == "-----BEGIN\nx")
      #expect("\(given)" == "[ApnsCredential, FcmV1Credential]")
    }
  }

  @Test func idsOfCredentialsAreShown() async throws {
    try await run { harness, _ in
      for hub in ["orders", "default"] {
        let reply = try await harness.request(.GET, "/\(hub)", as: .root)
        let properties = [
          [("AppName", "a.b"), ("AppId", "TEAM"), ("KeyId", "ABCDEFGHIJ")], [("PackageSid", "ms-app://1")],
          [("ProjectId", "p &amp; q")],
        ].map { $0.map { "<Property><Name>\($0)</Name><Value>\($1)</Value></Property>" }.joined() }
        #expect(
          reply.text.contains(
            "<ApnsCredential><Properties>\(properties[0])</Properties></ApnsCredential><RegistrationTtl>"),
          "\(reply.text)")
        #expect(
          reply.text.contains(
            "</RegistrationTtl><WnsCredential><Properties>\(properties[1])</Properties></WnsCredential><AuthorizationRules>"
              + "</AuthorizationRules><FcmV1Credential><Properties>\(properties[2])</Properties></FcmV1Credential>"),
          "\(reply.text)")
        #expect(!reply.text.contains("secret"))
      }
    }
  }

  /// As Java's client writes what it does not have.
  @Test func nullIsNoValue() async throws {
    try await run { harness, store in
      let content =
        Self.credential("ApnsCredential", [("KeyId", "null"), ("Token", "abc=")])
        + "<UserMetadata>null</UserMetadata><GcmCredential>null</GcmCredential>"
        + Self.credential("WnsCredential", [("PackageSid", "null"), ("SecretKey", " null ")])
      let reply = try await harness.request(
        .PUT, "/orders", as: .full, headers: [("If-Match", "*")], body: Self.body(content))
      #expect(reply.status == 200, "\(reply.text)")
      let given = store.given.withLock { $0 }
      #expect(given.map(\.name) == ["ApnsCredential", "WnsCredential"])
      #expect(given.last?["PackageSid"] == nil && given.last?["SecretKey"] == nil)
      #expect(given.first?["KeyId"] == nil && given.first?["Token"] == "abc=")
    }
  }

  @Test(arguments: [
    (credential("ApnsCredential", [("Token", "wrong")]), "ApnsCredential.Token must be a key"),
    (credential("GcmCredential", [("GoogleApiKey", "k")]), "GcmCredential cannot be changed here"),
    ("<RegistrationTtl>P90D</RegistrationTtl>", "RegistrationTtl cannot be changed here"),
    ("<AuthorizationRules><a>x</a></AuthorizationRules>", "AuthorizationRules cannot be changed here"),
    ("<UserMetadata>x</UserMetadata>", "UserMetadata cannot be changed here"),
    (credential("WnsCredential", [("SecretKey", "a"), ("secretkey", "b")]), "WnsCredential.secretkey is given twice"),
    ("<WnsCredential><Properties><Property><Value>x</Value></Property></Properties></WnsCredential>", "valid name"),
  ])
  func changesThatAreNotPossibleAreRefusedByName(content: String, problem: String) async throws {
    try await run { harness, store in
      let reply = try await harness.request(
        .PUT, "/orders", as: .full, headers: [("If-Match", "*")], body: Self.body(content))
      #expect(reply.status == 400 && reply.text.contains(problem), "\(reply.text)")
      #expect(store.given.withLock { $0.isEmpty })
    }
  }

  @Test func anUpdateNeedsTheRightAndItsCondition() async throws {
    try await run { harness, store in
      let body = Self.body(Self.credential("WnsCredential", [("SecretKey", "s")]))
      let lesser = try await harness.request(.PUT, "/orders", as: .send, headers: [("If-Match", "*")], body: body)
      #expect(lesser.status == 401 && lesser.text.contains("Manage claim is required"))
      let creation = try await harness.request(.PUT, "/orders", as: .full, body: body)
      #expect(creation.status == 409 && creation.text.contains("If-Match"), "\(creation.text)")
      let other = try await harness.request(.PUT, "/default", as: .root, headers: [("If-Match", "*")], body: body)
      #expect(other.status == 400 && other.text.contains("configuration"), "\(other.text)")
      #expect(store.given.withLock { $0.isEmpty })
    }
  }
}
