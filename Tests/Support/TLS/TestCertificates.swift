import Crypto
import Foundation
package import NIOSSL
import SwiftASN1
import X509

/// A new certificate authority, and its server certificate for `localhost` and 127.0.0.1.
package struct TestCertificates: Sendable {
  /// The authority's certificate, PEM.
  package let authorityPEM: String
  /// The server's certificate, PEM.
  package let serverPEM: String
  /// The server's private key, PEM.
  package let serverKeyPEM: String

  /// Makes keys and certificates that are valid for `days`. Without `coversAddress` the server's certificate names no
  /// address. `host` is the server's name. `hasKeyIdentifiers`: the certificates tell which key has signed them.
  package init(
    coversAddress: Bool = true, host: String = "localhost", days: Int = 1, hasKeyIdentifiers: Bool = false
  ) throws {
    var names: [GeneralName] = [.dnsName(host)]
    if coversAddress { names.append(.ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1]))) }
    let authorityKey = Certificate.PrivateKey(P256.Signing.PrivateKey())
    let authorityName = try DistinguishedName { CommonName("Fanfare test authority of \(host)") }
    let identifier = SubjectKeyIdentifier(hash: authorityKey.publicKey)
    let authority = try Self.certificate(
      subject: authorityName, key: authorityKey, issuer: authorityName, issuerKey: authorityKey, days: days,
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
        Critical(KeyUsage(keyCertSign: true))
        if hasKeyIdentifiers { identifier }
      })
    let serverKey = Certificate.PrivateKey(P256.Signing.PrivateKey())
    let server = try Self.certificate(
      subject: DistinguishedName { CommonName("localhost") }, key: serverKey, issuer: authorityName,
      issuerKey: authorityKey, days: days,
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.notCertificateAuthority)
        SubjectAlternativeNames(names)
        if hasKeyIdentifiers { AuthorityKeyIdentifier(keyIdentifier: identifier.keyIdentifier) }
      })
    authorityPEM = try authority.serializeAsPEM().pemString
    serverPEM = try server.serializeAsPEM().pemString
    serverKeyPEM = try serverKey.serializeAsPEM().pemString
  }

  /// TLS for a server with the server certificate.
  package func serverTLS() throws -> TLSConfiguration {
    let chain = try NIOSSLCertificate.fromPEMBytes(Array(serverPEM.utf8)).map {
      NIOSSLCertificateSource.certificate($0)
    }
    let key = try NIOSSLPrivateKey(bytes: Array(serverKeyPEM.utf8), format: .pem)
    return TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))
  }

  /// TLS for a client that trusts only this authority, and presents the certificate of `client`.
  package func clientTLS(as client: TestCertificates? = nil) throws -> TLSConfiguration {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(authorityPEM.utf8)))
    if let client {
      let identity = try client.serverTLS()
      (tls.certificateChain, tls.privateKey) = (identity.certificateChain, identity.privateKey)
    }
    return tls
  }

  /// Writes the server's `cert.pem` and `key.pem` to the directory, for other programs. Returns their paths.
  package func write(to directory: String) throws -> (certificate: String, key: String) {
    let (certificate, key) = (directory + "/cert.pem", directory + "/key.pem")
    try Data(serverPEM.utf8).write(to: URL(fileURLWithPath: certificate))
    try Data(serverKeyPEM.utf8).write(to: URL(fileURLWithPath: key))
    return (certificate, key)
  }

  private static func certificate(
    subject: DistinguishedName, key: Certificate.PrivateKey, issuer: DistinguishedName,
    issuerKey: Certificate.PrivateKey, days: Int, extensions: Certificate.Extensions
  ) throws -> Certificate {
    let now = Date()
    return try Certificate(
      version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: key.publicKey, notValidBefore: now - 3600,
      notValidAfter: now + Double(days) * 86_400, issuer: issuer, subject: subject,
      signatureAlgorithm: .ecdsaWithSHA256,
      extensions: extensions, issuerPrivateKey: issuerKey)
  }
}
