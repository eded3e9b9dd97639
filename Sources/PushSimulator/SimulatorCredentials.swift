import Crypto
import CryptoExtras
package import FanfareCore
import FoundationEssentials
import SwiftASN1
import X509

/// The keys and secrets of one app on every service, and the certificate authority of the simulator's TLS certificate.
/// They are made up and valid nowhere else.
package struct SimulatorCredentials: Sendable {
  /// The root that clients must trust, PEM.
  package var authorityPEM: String
  /// The certificate of all TLS listeners, PEM.
  package var certificatePEM: String
  /// Its private key, PEM. Secret.
  package var certificateKeyPEM: String
  /// The app at APNs.
  package var apns: APNsApp
  /// The service account at Google.
  package var google: GoogleServiceAccount
  /// The app at Microsoft.
  package var windows: WindowsApp

  /// An app that pushes through APNs with a provider token.
  package struct APNsApp: Sendable {
    /// The ES256 key as in the `.p8` file: PKCS #8, PEM. Secret.
    package var privateKeyPEM: String
    /// The key's id, ten characters.
    package var keyID: String
    /// The team's id, ten characters.
    package var teamID: String
    /// The bundle ids that may be pushed to.
    package var bundleIDs: [String]
  }

  /// A Google service account that may send to one project.
  package struct GoogleServiceAccount: Sendable {
    /// The project.
    package var projectID: String
    /// The account's name.
    package var clientEmail: String
    /// The key's id.
    package var privateKeyID: String
    /// The RS256 key as in the key file: PKCS #8, PEM. Secret.
    package var privateKeyPEM: String
  }

  /// An app that pushes through WNS, with the credentials of both token flows.
  package struct WindowsApp: Sendable, Codable {
    /// The package SID, `ms-app://S-1-15-2-…`: the client id of `login.live.com`.
    package var packageSID: String
    /// The secret of the package SID.
    package var packageSecret: String
    /// The Entra tenant.
    package var tenantID: String
    /// The application's id in the tenant.
    package var applicationID: String
    /// The application's secret. Secret.
    package var applicationSecret: String
  }
}

extension SimulatorCredentials {
  /// The local hosts in the simulator's certificate.
  static let certificateHosts = ["127.0.0.1", "::1", "localhost"]

  /// The names in the simulator's certificate: the local machine, and the services it plays, for clients that are
  /// redirected here.
  static let certificateNames = [
    "localhost", "api.push.apple.com", "api.sandbox.push.apple.com", "fcm.googleapis.com", "oauth2.googleapis.com",
    "*.notify.windows.com", "login.live.com", "login.microsoftonline.com",
  ]

  /// The least remaining lifetime of the certificate when a simulator starts, so that it does not expire while it runs.
  private static let leastCertificateDays: Int64 = 30

  /// Generates keys and secrets, with a certificate valid for a year from `now`. The RSA key takes some tenths of a
  /// second.
  package static func generate(
    bundleIDs: [String] = ["com.example.fanfare"], projectID: String = "fanfare-simulator",
    now: UnixTime = SystemWallClock().now()
  ) throws -> SimulatorCredentials {
    let tls = try makeTLS(now: now)
    return SimulatorCredentials(
      authorityPEM: tls.authority, certificatePEM: tls.certificate, certificateKeyPEM: tls.key,
      apns: .generate(teamID: randomText(10, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), bundleIDs: bundleIDs),
      google: try .generate(projectID: projectID),
      windows: WindowsApp(
        packageSID: "ms-app://S-1-15-2-\(randomText(10, of: "123456789"))-\(randomText(10, of: "123456789"))",
        packageSecret: randomText(40), tenantID: identifier(), applicationID: identifier(),
        applicationSecret: randomText(40)))
  }

  /// Replaces authority and certificate, for a year from `now`, if the certificate ends within 30 days. Returns whether
  /// it did; then clients must trust the new authority. Throws if the certificate is invalid.
  package mutating func renewCertificate(now: UnixTime = SystemWallClock().now()) throws -> Bool {
    let end = try Certificate(pemEncoded: certificatePEM).notValidAfter
    guard end < Self.date(now, daysLater: Self.leastCertificateDays) else { return false }
    (authorityPEM, certificatePEM, certificateKeyPEM) = try Self.makeTLS(now: now)
    return true
  }

  /// An authority, a certificate issued by it, and the certificate's key, all in PEM.
  private static func makeTLS(now: UnixTime) throws -> (authority: String, certificate: String, key: String) {
    let (authorityKey, key) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
    let authority = try makeAuthority(key: authorityKey, now: now)
    let certificate = try makeCertificate(
      for: key.publicKey, authority: authority, authorityKey: authorityKey, now: now)
    return (try authority.serializeAsPEM().pemString, try certificate.serializeAsPEM().pemString, key.pemRepresentation)
  }

  private static func date(_ time: UnixTime, daysLater days: Int64) -> Date {
    Date(timeIntervalSince1970: Double(time.seconds + days * 86_400))
  }

  private static func makeAuthority(key: P256.Signing.PrivateKey, now: UnixTime) throws -> Certificate {
    let name = try DistinguishedName { CommonName("Fanfare push simulator authority") }
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key.publicKey),
      notValidBefore: date(now, daysLater: -1), notValidAfter: date(now, daysLater: 10 * 365),
      issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
      extensions: try Certificate.Extensions {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
        Critical(KeyUsage(keyCertSign: true, cRLSign: true))
      },
      issuerPrivateKey: .init(key))
  }

  private static func makeCertificate(
    for key: P256.Signing.PublicKey, authority: Certificate, authorityKey: P256.Signing.PrivateKey, now: UnixTime
  ) throws -> Certificate {
    let loopback: [GeneralName] = [
      .ipAddress(.init(contentBytes: [127, 0, 0, 1])),
      .ipAddress(.init(contentBytes: [UInt8](repeating: 0, count: 15)[...] + [1])),
    ]
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key),
      // A year is below the 398 days that TLS clients accept.
      notValidBefore: date(now, daysLater: -1), notValidAfter: date(now, daysLater: 365),
      issuer: authority.subject, subject: try DistinguishedName { CommonName("Fanfare push simulator") },
      signatureAlgorithm: .ecdsaWithSHA256,
      extensions: try Certificate.Extensions {
        Critical(BasicConstraints.notCertificateAuthority)
        Critical(KeyUsage(digitalSignature: true))
        try ExtendedKeyUsage([.serverAuth])
        SubjectAlternativeNames(certificateNames.map { .dnsName($0) } + loopback)
      },
      issuerPrivateKey: .init(authorityKey))
  }

  private static func identifier() -> String { Identifier<SimulatorCredentials>.random().description }

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
  static func generate(teamID: String, bundleIDs: [String]) -> Self {
    Self(
      privateKeyPEM: P256.Signing.PrivateKey().pemRepresentation,
      keyID: SimulatorCredentials.randomText(10, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), teamID: teamID,
      bundleIDs: bundleIDs)
  }
}

extension SimulatorCredentials.GoogleServiceAccount {
  /// Throws if the key cannot be generated.
  static func generate(projectID: String) throws -> Self {
    Self(
      projectID: projectID, clientEmail: "sender@\(projectID).iam.gserviceaccount.com",
      privateKeyID: SimulatorCredentials.randomText(40, of: "0123456789abcdef"),
      privateKeyPEM: try _RSA.Signing.PrivateKey(keySize: .bits2048).pkcs8PEMRepresentation)
  }
}
