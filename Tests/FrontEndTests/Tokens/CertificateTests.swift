import Crypto
import FanfareCore
import Foundation
import SwiftASN1
import Testing
import X509

@testable import FrontEnd

@Suite struct CertificateTests {
  /// A certificate with these names. The listener has verified it, so that it needs no authority.
  private func certificate(commonNames: [String] = [], names: [GeneralName] = []) throws -> ClientCertificate {
    let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
    let subject = DistinguishedName(
      commonNames.map { RelativeDistinguishedName([.init(type: .RDNAttributeType.commonName, utf8String: $0)]) })
    let certificate = try Certificate(
      version: .v3, serialNumber: .init(), publicKey: key.publicKey, notValidBefore: .now,
      notValidAfter: .now.addingTimeInterval(60), issuer: subject, subject: subject,
      signatureAlgorithm: .ecdsaWithSHA256,
      extensions: names.isEmpty ? .init() : Certificate.Extensions { SubjectAlternativeNames(names) },
      issuerPrivateKey: key)
    var serializer = DER.Serializer()
    try serializer.serialize(certificate)
    return ClientCertificate(der: serializer.serializedBytes)
  }

  private func user(
    _ source: CertificateAuthenticator.UserSource, _ certificate: ClientCertificate, hub: HubName = .default
  ) async throws -> Principal? {
    let policy = ScopePolicy(everyone: [.sendUser], users: ["checkout": [.sendTag]])
    return try await CertificateAuthenticator(hub: .default, userFrom: source, policy: policy)
      .authenticate(.certificate(certificate), hub: hub, from: .unknown)
  }

  @Test func configuredPartNamesTheUser() async throws {
    let whole = try certificate(
      commonNames: ["checkout"],
      names: [
        .dnsName("checkout.example.com"), .uniformResourceIdentifier("spiffe://example.com/checkout"),
        .rfc822Name("checkout@example.com"),
      ])
    for (source, name) in [
      (.commonName, "checkout"), (.dns, "checkout.example.com"), (.uri, "spiffe%3A//example.com/checkout"),
      (.email, "checkout@example.com"),
    ] as [(CertificateAuthenticator.UserSource, String)] {
      #expect(try await user(source, whole)?.user == name)
      #expect(try await user(source, whole, hub: try #require(HubName("other"))) == nil)
    }
    #expect(try await user(.commonName, whole)?.scopes == [.sendUser, .sendTag])
    #expect(try await user(.dns, whole)?.scopes == [.sendUser])
  }

  /// Otherwise an authority that may sign for one kind of URI could name the users of another.
  @Test func urisThatDifferNameDifferentUsers() async throws {
    var users: Set<String> = []
    let uris = [
      "spiffe://example.com/a", "https://example.com/a", "example.com/a", "spiffe:example.com/a", "urn:a:b",
      "urn:a%3Ab",
      "urn%3Aa:b", "urn:a%253Ab",
    ]
    for uri in uris {
      let user = try await user(.uri, certificate(names: [.uniformResourceIdentifier(uri)]))?.user
      users.insert(try #require(user, "\(uri)"))
    }
    #expect(users.count == uris.count)
  }

  @Test func certificatesWithoutOneUsableNameAuthenticateNobody() async throws {
    let two = try certificate(
      commonNames: ["a", "b"],
      names: [
        .dnsName("a"), .dnsName("b"), .uniformResourceIdentifier("urn:a"),
        .uniformResourceIdentifier("urn:b"), .rfc822Name("a"), .rfc822Name("b"),
      ])
    let none = try certificate()
    for source in CertificateAuthenticator.UserSource.allCases {
      #expect(try await user(source, two) == nil)
      #expect(try await user(source, none) == nil)
      #expect(try await user(source, ClientCertificate(der: [1, 2, 3])) == nil)
    }
    for name in ["a:b", "", "a\u{0}b", String(repeating: "x", count: 112)] {
      #expect(try await user(.commonName, certificate(commonNames: [name])) == nil)
    }
  }
}
