import Crypto
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
  /// The app at each service.
  private(set) var apps: [any SimulatedApp]

  /// The app of a service.
  subscript<App: SimulatedApp>(_ type: App.Type) -> App {
    get {
      guard let app = apps.lazy.compactMap({ $0 as? App }).first else { preconditionFailure("there is no \(App.self)") }
      return app
    }
    set {
      apps.removeAll { $0 is App }
      apps.append(newValue)
    }
  }
}

extension SimulatorCredentials {
  /// The local hosts in the simulator's certificate.
  static let certificateHosts = ["127.0.0.1", "::1", "localhost"]

  /// The names in the simulator's certificate: the local machine, and the services it plays, for clients that are
  /// redirected here.
  static let certificateNames = ["localhost"] + SimulatedPushServices.all.flatMap { $0.hosts }

  /// The least remaining lifetime of the certificate when a simulator starts, so that it does not expire while it runs.
  private static let leastCertificateDays: Int64 = 30

  /// Generates keys and secrets, with a certificate valid for a year from `now`. The RSA key takes some tenths of a
  /// second.
  package static func generate(now: UnixTime = SystemWallClock().now()) throws -> SimulatorCredentials {
    let tls = try makeTLS(now: now)
    return SimulatorCredentials(
      authorityPEM: tls.authority, certificatePEM: tls.certificate, certificateKeyPEM: tls.key,
      apps: try SimulatedPushServices.all.map { try $0.generateApp() })
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

  static func randomText(
    _ count: Int, of alphabet: String = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  ) -> String {
    let letters = Array(alphabet.utf8)
    var generator = SystemRandomNumberGenerator()
    let text = (0..<count).map { _ in letters[Int.random(in: letters.indices, using: &generator)] }
    return String(decoding: text, as: UTF8.self)
  }
}
