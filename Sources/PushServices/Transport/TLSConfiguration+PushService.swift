import NIOCore
import NIOSSL

extension TLSConfiguration {
  /// TLS towards a push service: version 1.2 or later, host names verified against the system's roots or, where they
  /// are given in PEM, these. Throws when there is no certificate in them.
  static func pushService(trustRoots: String?) throws(PushConfigurationError) -> TLSConfiguration {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    tls.certificateVerification = .fullVerification
    // A peer that does not say goodbye must not hold up ours.
    tls.shutdownTimeout = .seconds(1)
    guard let trustRoots else { return tls }
    do {
      let certificates = try NIOSSLCertificate.fromPEMBytes(Array(trustRoots.utf8))
      guard !certificates.isEmpty else {
        throw PushConfigurationError(field: "trustRoots", problem: "holds no certificate")
      }
      tls.trustRoots = .certificates(certificates)
      return tls
    } catch {
      throw PushConfigurationError(field: "trustRoots", problem: "must be certificates in PEM")
    }
  }
}
