import Crypto
import FanfareCore
import Foundation
import Testing

@testable import FrontEnd

/// Tokens and key sets of the shapes that the documentation of each identity provider gives.
@Suite struct TokenShapeTests {
  private static let now = UnixTime(milliseconds: 1_795_248_000_000)
  private static let times = #""iat":1795247990,"nbf":1795247990,"exp":1795248290"#

  /// Verifies a token that an RSA key of id `k1` signs.
  private func identity(
    _ payload: String, _ rules: TokenRules, keySet: [UInt8]? = nil, hub: HubName = .default
  ) async throws -> TokenIdentity {
    let key = TestIssuer.Key.rsa("k1", TestIssuer.rsa[0])
    let keys = try await VerificationKeys(keySet ?? TestIssuer.keySet([key]), algorithms: rules.algorithms)
    let token = try JSONWebToken(try TestIssuer.token(payload, key: key))
    let algorithm = try #require(TokenAlgorithm(rawValue: token.algorithm))
    let verifier = try #require(keys.key(token.keyID, algorithm))
    #expect(verifier.verifies(token))
    return try rules.identity(of: token.payload, hub: hub, at: Self.now)
  }

  @Test func keycloakAccessToken() async throws {
    // Roles of the realm and of the client are nested; the key set has a key for encryption too.
    var rules = TokenRules(issuer: "https://sso.example.com/realms/shop", audiences: ["fanfare"])
    rules.scopeClaim = "resource_access.fanfare.roles"
    rules.groupClaim = "realm_access.roles"
    rules.userClaim = "preferred_username"
    let payload = """
      {\(Self.times),"jti":"onrtac:8e9c4f0e-7d2b-4b0e-9a77-1b0e6f0b8f0a","iss":"https://sso.example.com/realms/shop",
      "aud":["fanfare","account"],"sub":"0b3f7b0a-5f5b-4b8c-8f0e-3d1a0f0f4a11","typ":"Bearer","azp":"shop-backend",
      "sid":"4d5e","acr":"1","allowed-origins":["https://shop.example.com"],
      "realm_access":{"roles":["offline_access","default-roles-shop","newsletter"]},
      "resource_access":{"fanfare":{"roles":["send:user","send:tag"]},"account":{"roles":["view-profile"]}},
      "scope":"profile email","email_verified":true,"preferred_username":"alice"}
      """
    let encryption = #"{"kid":"e1","kty":"RSA","alg":"RSA-OAEP","use":"enc","x5c":["MIIC"],"n":"AQAB","e":"AQAB"}"#
    let key = TestIssuer.Key.rsa("k1", TestIssuer.rsa[0])
    let set = try TestIssuer.keySet([key], members: #","alg":"RS256","use":"sig","x5t":"ab""#, others: [encryption])
    #expect(
      try await identity(payload, rules, keySet: set)
        == TokenIdentity(
          user: "alice", scopes: ["send:user", "send:tag"],
          groups: ["offline_access", "default-roles-shop", "newsletter"],
          expiresAt: UnixTime(milliseconds: 1_795_248_350_000)))
  }

  @Test func entraAccessToken() async throws {
    // Version 2.0: the audience is the client's id; app roles are in `roles`; keys have no `alg`.
    let tenant = "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"
    var rules = TokenRules(issuer: tenant, audiences: ["6e74172b-be56-4843-9ff4-e66a39bb12e3"])
    rules.userClaim = "oid"
    rules.scopeClaim = "roles"
    rules.groupClaim = "groups"
    let payload = """
      {"aud":"6e74172b-be56-4843-9ff4-e66a39bb12e3","iss":"\(tenant)",\(Self.times),"aio":"AXQAi/8IAAAA","azp":"8a7b",
      "azpacr":"1","name":"Abe Lincoln","oid":"690222be-ff1a-4d56-abd1-7e4f7d38e474","preferred_username":"abeli@x.com",
      "rh":"I","roles":["send:broadcast"],"groups":["3b4c"],"scp":"access_as_user","sub":"HKZpfaHyWadeOouYlitjrI-KffTm2",
      "tid":"72f988bf-86f1-41af-91ab-2d7cd011db47","uti":"fqiBqXLPj0eQa82S-IYFAA","ver":"2.0"}
      """
    let key = TestIssuer.Key.rsa("k1", TestIssuer.rsa[0])
    let set = try TestIssuer.keySet(
      [key], members: #","use":"sig","x5t":"k1","x5c":["MIIC"],"issuer":"\#(tenant)""#)
    let found = try await identity(payload, rules, keySet: set)
    #expect(found.user == "690222be-ff1a-4d56-abd1-7e4f7d38e474")
    #expect(found.scopes == ["send:broadcast"] && found.groups == ["3b4c"])
    // A token of a user without app roles has no claim `roles`.
    let withoutRoles = payload.replacing(#""roles":["send:broadcast"],"#, with: "")
    #expect(try await identity(withoutRoles, rules).scopes == [])
  }

  @Test func auth0AccessToken() async throws {
    // The issuer ends with a slash; scopes are words; own claims are named by URLs, whose dots separate nothing.
    var rules = TokenRules(issuer: "https://shop.eu.auth0.com/", audiences: ["https://fanfare.example.com"])
    rules.scopeClaim = "scope"
    rules.groupClaim = "https://shop.example.com/groups"
    rules.hubClaim = "https://shop.example.com/hub"
    let payload = """
      {"iss":"https://shop.eu.auth0.com/","sub":"auth0|65f1c0ffee","aud":["https://fanfare.example.com",
      "https://shop.eu.auth0.com/userinfo"],\(Self.times),"azp":"my_client_id","scope":"openid profile send:user",
      "https://shop.example.com/groups":["staff"],"https://shop.example.com/hub":"default"}
      """
    let found = try await identity(payload, rules)
    #expect(found.user == "auth0|65f1c0ffee")
    #expect(found.scopes == ["openid", "profile", "send:user"] && found.groups == ["staff"])
    // A backend (client credentials).
    let backend = payload.replacing("auth0|65f1c0ffee", with: "my_client_id@clients")
    #expect(try await identity(backend, rules).user == "my_client_id@clients")
  }

  @Test func googleIDToken() async throws {
    let client = "1234987819200.apps.googleusercontent.com"
    var rules = TokenRules(issuer: "https://accounts.google.com", audiences: [client])
    rules.groupClaim = "hd"
    let payload = """
      {"iss":"https://accounts.google.com","azp":"\(client)","aud":"\(client)","sub":"10769150350006150715113082367",
      "at_hash":"HK6E_P6Dh8Y93mRNtsDB1Q","hd":"example.com","email":"jsmith@example.com","email_verified":"true",
      \(Self.times),"nonce":"0394852-3190485-2490358"}
      """
    let key = TestIssuer.Key.rsa("k1", TestIssuer.rsa[0])
    let set = try TestIssuer.keySet([key], members: #","use":"sig","alg":"RS256""#)
    let found = try await identity(payload, rules, keySet: set)
    #expect(found.user == "10769150350006150715113082367")
    #expect(found.scopes == nil && found.groups == ["example.com"])
  }
}
