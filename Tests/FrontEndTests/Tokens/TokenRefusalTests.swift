import Crypto
import CryptoExtras
import FanfareCore
import Foundation
import Support
import Testing

@testable import FrontEnd

@Suite struct TokenRefusalTests {
  private static let now = UnixTime(milliseconds: 1_795_248_000_000)
  private static let rsa = TestIssuer.Key.rsa("r", TestIssuer.rsa[0])
  private static let otherRSA = TestIssuer.Key.rsa("r", TestIssuer.rsa[1])
  private static let p256 = TestIssuer.Key.p256("p", P256.Signing.PrivateKey())

  private static var rules: TokenRules {
    var rules = TokenRules(issuer: "https://issuer.example", audiences: ["fanfare", "other fanfare"])
    rules.hubClaim = "hub"
    return rules
  }

  /// The payload of a valid token with some members replaced; nil removes a member.
  private static func payload(_ changes: [String: String?] = [:]) -> String {
    var members: [String: String] = [
      "iss": #""https://issuer.example""#, "aud": #""fanfare""#, "sub": #""alice""#, "exp": "1795248300",
      "hub": #""default""#,
    ]
    for (name, value) in changes { members[name] = value }
    return "{" + members.map { #""\#($0)":\#($1)"# }.joined(separator: ",") + "}"
  }

  /// Returns why a token is refused; nil if it is accepted.
  private func refusal(of token: String) async throws -> TokenRefusal? {
    let keys = try await VerificationKeys(TestIssuer.keySet([Self.rsa, Self.p256]), algorithms: Self.rules.algorithms)
    do throws(TokenRefusal) {
      let token = try JSONWebToken(token)
      guard let algorithm = TokenAlgorithm(rawValue: token.algorithm), Self.rules.algorithms.contains(algorithm) else {
        return .algorithm
      }
      guard let key = keys.key(token.keyID, algorithm) else { return .unknownKey }
      guard key.verifies(token) else { return .signature }
      _ = try Self.rules.identity(of: token.payload, hub: .default, at: Self.now)
      return nil
    } catch {
      return error
    }
  }

  @Test(
    arguments: [
      ([:], nil),
      (["iss": #""https://issuer.example/""#], .issuer), (["iss": nil], .issuer),
      (["iss": #"["https://issuer.example"]"#], .issuer),
      (["aud": #"["a","fanfare"]"#], nil), (["aud": #""other fanfare""#], nil), (["aud": #""other""#], .audience),
      (["aud": "[]"], .audience), (["aud": nil], .audience), (["aud": #""fanfare other""#], .audience),
      (["exp": "1795247941"], nil), (["exp": "1795247940"], .expired), (["exp": "1795247940.5"], nil),
      (["exp": nil], .malformed), (["exp": #""1795248300""#], .malformed), (["exp": "1e300"], .malformed),
      (["exp": "-1"], .malformed),
      (["nbf": "1795248060"], nil), (["nbf": "1795248061"], .notYetValid), (["nbf": "true"], .malformed),
      (["sub": nil], .user), (["sub": #""""#], .user), (["sub": #""a:b""#], .user), (["sub": "7"], .user),
      (["sub": #""a\u0000b""#], .user), (["sub": #""\#(String(repeating: "x", count: 112))""#], .user),
      (["hub": #"["shop","default"]"#], nil), (["hub": #""shop""#], .hub), (["hub": nil], .hub), (["hub": "{}"], .hub),
    ] as [([String: String?], TokenRefusal?)])
  func claimsDecide(_ changes: [String: String?], _ expected: TokenRefusal?) async throws {
    #expect(try await refusal(of: TestIssuer.token(Self.payload(changes), key: Self.rsa)) == expected)
  }

  @Test func signatureDecides() async throws {
    let good = try TestIssuer.token(Self.payload(), key: Self.p256)
    #expect(try await refusal(of: good) == nil)
    let parts = good.split(separator: ".").map(String.init)
    let forged = TestIssuer.base64URL(Array(Self.payload(["sub": #""opal""#]).utf8))
    #expect(try await refusal(of: "\(parts[0]).\(forged).\(parts[2])") == .signature)
    #expect(try await refusal(of: "\(parts[0]).\(parts[1]).AAAA") == .signature)
    // The other key with the id of the first one.
    #expect(try await refusal(of: TestIssuer.token(Self.payload(), key: Self.otherRSA)) == .signature)
    let renamed = try TestIssuer.token(Self.payload(), key: .rsa("q", TestIssuer.rsa[0]))
    #expect(try await refusal(of: renamed) == .unknownKey)
  }

  @Test func algorithmOfTheTokenIsNotTrusted() async throws {
    func unsigned(_ header: String) -> String {
      TestIssuer.base64URL(Array(header.utf8)) + "." + TestIssuer.base64URL(Array(Self.payload().utf8)) + "."
    }
    for name in ["none", "None", "NONE", "nOnE"] {
      #expect(try await refusal(of: unsigned(#"{"alg":"\#(name)","kid":"r"}"#)) == .malformed)
      #expect(try await refusal(of: unsigned(#"{"alg":"\#(name)","kid":"r"}"#) + "AAAA") == .algorithm)
    }
    // Signed with HMAC, under the public key's modulus or its whole key set as the secret.
    for secret in [try TestIssuer.keySet([Self.rsa]), Array(TestIssuer.rsa[0].publicKey.pemRepresentation.utf8)] {
      let signed = String(unsigned(#"{"alg":"HS256","typ":"JWT","kid":"r"}"#).dropLast())
      let code = HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: SymmetricKey(data: secret))
      #expect(try await refusal(of: signed + "." + TestIssuer.base64URL(Array(code))) == .algorithm)
    }
    // Known, but not in the configuration; and that of another kind of key.
    #expect(try await refusal(of: TestIssuer.token(Self.payload(), key: Self.rsa, algorithm: "PS256")) == .algorithm)
    #expect(try await refusal(of: TestIssuer.token(Self.payload(), key: Self.rsa, algorithm: "RS512")) == .algorithm)
    #expect(try await refusal(of: TestIssuer.token(Self.payload(), key: Self.rsa, algorithm: "ES256")) == .unknownKey)
  }

  @Test func malformedTokensAreRefused() async throws {
    let good = try TestIssuer.token(Self.payload(), key: Self.rsa)
    let parts = good.split(separator: ".").map(String.init)
    let headers = [
      "[]", "{}", #"{"alg":7}"#, #"{"alg":"RS256","kid":7}"#, #"{"alg":"RS256","alg":"RS256"}"#, "{",
      #"{"alg":"RS256"}x"#,
      #"{"alg":"RS256","kid":"r","crit":["exp"],"exp":1}"#,
    ]
    for header in headers {
      #expect(try await refusal(of: TestIssuer.token(Self.payload(), key: Self.rsa, header: header)) == .malformed)
    }
    for token in [
      "", ".", "..", "...", "a.b", good + ".", good + "=", "." + good, good + " ", parts[0] + "." + parts[1],
      "\(parts[0])..\(parts[2])", good.replacing(".", with: " "), parts[0] + "+." + parts[1] + "." + parts[2],
      String(repeating: "a", count: 8193), "\u{e4}.\u{e4}.\u{e4}",
    ] {
      #expect(try await refusal(of: token) == .malformed, "\(token.prefix(40))")
    }
    for payload in ["[]", "{", #"{"iss":"a","iss":"b"}"#, String(repeating: "[", count: 100)] {
      #expect(try await refusal(of: TestIssuer.token(payload, key: Self.rsa)) == .malformed)
    }
  }

  @Test func keysServeOnlyTheirOwnAlgorithms() async throws {
    let all = Set(TokenAlgorithm.allCases)
    let edwards = TestIssuer.Key.ed25519("e", Curve25519.Signing.PrivateKey())
    let keys = try await VerificationKeys(TestIssuer.keySet([Self.rsa, Self.p256, edwards]), algorithms: all)
    for (key, algorithm) in [
      (Self.rsa, "RS256"), (Self.rsa, "RS512"), (Self.rsa, "PS256"), (Self.p256, nil), (edwards, nil),
    ] {
      let token = try JSONWebToken(try TestIssuer.token(Self.payload(), key: key, algorithm: algorithm))
      let name = try #require(TokenAlgorithm(rawValue: token.algorithm))
      let found = try #require(keys.key(key.id, name))
      #expect(found.verifies(token), "\(name)")
    }
    #expect(keys.key("r", .es256) == nil && keys.key("p", .es384) == nil && keys.key("e", .rs256) == nil)
    // Without an id, only if there is no choice.
    #expect(keys.key(nil, .es256) != nil)
    let two = try await VerificationKeys(
      TestIssuer.keySet([Self.rsa, .rsa("s", TestIssuer.rsa[1])]), algorithms: [.rs256])
    #expect(two.key(nil, .rs256) == nil && two.key("s", .rs256) != nil)
    // The key's own `alg` excludes the others.
    let bound = try await VerificationKeys(TestIssuer.keySet([Self.rsa], members: #","alg":"RS512""#), algorithms: all)
    #expect(bound.key("r", .rs256) == nil && bound.key("r", .rs512) != nil)
  }

  @Test func unusableKeySetsAreRefused() async throws {
    let symmetric = #"{"kty":"oct","kid":"r","alg":"HS256","k":"AAAA"}"#
    for json in [
      Array("{".utf8), Array("{}".utf8), Array(#"{"keys":{}}"#.utf8), Array(#"{"keys":[]}"#.utf8),
      Array(#"{"keys":[7,\#(symmetric),{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#.utf8),
      try TestIssuer.keySet([Self.rsa], members: #","use":"enc""#),
      try TestIssuer.keySet([Self.rsa], members: #","key_ops":["encrypt"]"#),
      try TestIssuer.keySet([Self.rsa], members: #","alg":"RSA-OAEP""#),
      [UInt8](repeating: 0x20, count: VerificationKeys.maximumSize + 1),
    ] {
      await #expect(throws: VerificationKeys.Unusable.self) {
        try await VerificationKeys(json, algorithms: TokenAlgorithm.usual)
      }
    }
  }
}
