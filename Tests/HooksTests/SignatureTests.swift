import Foundation
import Testing

@testable import Hooks

/// The signatures of the Standard Webhooks specification, and the addresses of receivers.
@Suite struct SignatureTests {
  /// The example of the specification's own libraries.
  @Test func signatureEqualsTheSpecificationsExample() throws {
    let secrets = try #require(WebhookSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"))
    let signature = secrets.signature(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
    #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test func twoSecretsSignDuringARotation() throws {
    let (old, new) = ("whsec_" + Self.random(), "whsec_" + Self.random())
    let body = Array("[]".utf8)
    let both = try #require(WebhookSecrets("\(new)\n\(old)\n")).signature(id: "a", timestamp: 1, body: body)
    let each = try [new, old].map { try #require(WebhookSecrets($0)).signature(id: "a", timestamp: 1, body: body) }
    #expect(both == each.joined(separator: " "))
  }

  @Test(arguments: ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64!"])
  func otherSecretsAreRefused(text: String) {
    #expect(WebhookSecrets(text) == nil)
  }

  @Test func threeSecretsAreRefused() {
    #expect(WebhookSecrets((0..<3).map { _ in "whsec_" + Self.random() }.joined(separator: "\n")) == nil)
  }

  @Test func secretsAreNotDescribed() throws {
    let secret = Self.random()
    let secrets = try #require(WebhookSecrets("whsec_" + secret))
    #expect(!"\(secrets)".contains(secret))
  }

  @Test(arguments: [
    "http://example.com/", "https://user@example.com/", "https://example.com/#part", "https://", "https:///path",
    "https://example.com:0/", "https://example.com:port/", "https://exa%6dple.com/", "https://a\\b/",
    "ftp://example.com", "https://example.com/ x", "https://[::1/",
  ])
  func otherURLsAreRefused(text: String) {
    #expect(HookURL(text) == nil)
  }

  @Test func hostOfAURLIsReadInLowerCase() throws {
    let url = try #require(HookURL("https://Hooks.Example.COM:8443/Path?q=A"))
    #expect(url.host == "hooks.example.com" && url.text == "https://hooks.example.com:8443/Path?q=A")
    #expect(HookURL("https://[2606:4700::1111]/x")?.host == "2606:4700::1111")
  }

  @Test(arguments: [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1",
    "fc00::1", "fd12::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::a00:1", "2002:a00:1::1", "2001::1",
    "2001:db8::1", "not an address", "",
  ])
  func specialAddressesAreNotPublic(address: String) {
    #expect(!PublicAddress.isPublic(address))
  }

  @Test(arguments: ["8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"])
  func otherAddressesArePublic(address: String) {
    #expect(PublicAddress.isPublic(address))
  }

  private static func random() -> String {
    Data((0..<32).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()
  }
}
