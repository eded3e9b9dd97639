import Crypto
import CryptoExtras
import FanfareCore
import FoundationEssentials
import SwiftASN1
import X509

extension SimulatorCredentials {
  /// The hosts of this machine that the simulator's certificate is good for.
  static let certificateHosts = ["127.0.0.1", "::1", "localhost"]

  /// The names that the simulator's certificate is good for: those of the machine itself, and those of the services it plays, for clients
  /// that are led here while they believe to talk to the real ones.
  static let certificateNames = [
    "localhost", "api.push.apple.com", "api.sandbox.push.apple.com", "fcm.googleapis.com", "oauth2.googleapis.com",
    "*.notify.windows.com", "login.live.com", "login.microsoftonline.com",
  ]

  /// Makes new keys and secrets. Takes some tenths of a second, for the RSA key.
  package static func generate(
    bundleIDs: [String] = ["com.example.fanfare"], projectID: String = "fanfare-simulator", extraNames: [String] = []
  ) throws -> SimulatorCredentials {
    let authorityKey = P256.Signing.PrivateKey()
    let certificateKey = P256.Signing.PrivateKey()
    let authority = try makeAuthority(key: authorityKey)
    let certificate = try makeCertificate(
      for: certificateKey.publicKey, names: certificateNames + extraNames, authority: authority, authorityKey: authorityKey)
    return SimulatorCredentials(
      authorityPEM: try authority.serializeAsPEM().pemString,
      certificatePEM: try certificate.serializeAsPEM().pemString,
      certificateKeyPEM: certificateKey.pemRepresentation,
      apns: .generate(teamID: randomText(10, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), bundleIDs: bundleIDs),
      google: try .generate(projectID: projectID),
      windows: WindowsApp(
        packageSID: "ms-app://S-1-15-2-\(randomText(10, of: "123456789"))-\(randomText(10, of: "123456789"))",
        packageSecret: randomText(40), tenantID: identifier(), applicationID: identifier(), applicationSecret: randomText(40)))
  }

  private static func makeAuthority(key: P256.Signing.PrivateKey) throws -> Certificate {
    let name = try DistinguishedName { CommonName("Fanfare push simulator authority") }
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key.publicKey),
      notValidBefore: Date(timeIntervalSinceNow: -86_400), notValidAfter: Date(timeIntervalSinceNow: 10 * 365 * 86_400),
      issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
      extensions: try Certificate.Extensions {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
        Critical(KeyUsage(keyCertSign: true, cRLSign: true))
      },
      issuerPrivateKey: .init(key))
  }

  private static func makeCertificate(
    for key: P256.Signing.PublicKey, names: [String], authority: Certificate, authorityKey: P256.Signing.PrivateKey
  ) throws -> Certificate {
    let loopback: [GeneralName] = [
      .ipAddress(.init(contentBytes: [127, 0, 0, 1])),
      .ipAddress(.init(contentBytes: [UInt8](repeating: 0, count: 15)[...] + [1])),
    ]
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key),
      // A year is under the 398 days that TLS clients grant at most.
      notValidBefore: Date(timeIntervalSinceNow: -86_400), notValidAfter: Date(timeIntervalSinceNow: 365 * 86_400),
      issuer: authority.subject, subject: try DistinguishedName { CommonName("Fanfare push simulator") },
      signatureAlgorithm: .ecdsaWithSHA256,
      extensions: try Certificate.Extensions {
        Critical(BasicConstraints.notCertificateAuthority)
        Critical(KeyUsage(digitalSignature: true))
        try ExtendedKeyUsage([.serverAuth])
        SubjectAlternativeNames(names.map { .dnsName($0) } + loopback)
      },
      issuerPrivateKey: .init(authorityKey))
  }

  private static func identifier() -> String {
    Identifier<SimulatorCredentials>.random().description
  }

  fileprivate static func randomText(
    _ count: Int, of alphabet: String = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  ) -> String {
    let letters = Array(alphabet.utf8)
    var generator = SystemRandomNumberGenerator()
    let text = (0..<count).map { _ in letters[Int.random(in: letters.indices, using: &generator)] }
    return String(decoding: text, as: UTF8.self)
  }
}

extension SimulatorCredentials.APNsApp {
  /// A new key of a team.
  static func generate(teamID: String, bundleIDs: [String]) -> Self {
    Self(
      privateKeyPEM: P256.Signing.PrivateKey().pemRepresentation,
      keyID: SimulatorCredentials.randomText(10, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), teamID: teamID,
      bundleIDs: bundleIDs)
  }
}

extension SimulatorCredentials.GoogleServiceAccount {
  /// A new key of a project's account. Throws when the library cannot make one.
  static func generate(projectID: String) throws -> Self {
    Self(
      projectID: projectID, clientEmail: "sender@\(projectID).iam.gserviceaccount.com",
      privateKeyID: SimulatorCredentials.randomText(40, of: "0123456789abcdef"),
      privateKeyPEM: try _RSA.Signing.PrivateKey(keySize: .bits2048).pkcs8PEMRepresentation)
  }
}
