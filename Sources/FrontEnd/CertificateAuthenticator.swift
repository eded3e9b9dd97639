package import FanfareCore
import SwiftASN1
import X509

/// Authenticates callers by the TLS certificates that a listener has verified.
package struct CertificateAuthenticator: Authenticator {
  /// The part of a certificate that names the user.
  package enum UserSource: String, CaseIterable, Sendable {
    /// The only URI among the subject's alternative names, whole. User names have no colon, so `:` is written `%3A` and
    /// `%` is written `%25`: the user of `spiffe://example.org/shop` is `spiffe%3A//example.org/shop`.
    case uri
    /// The only DNS name among the subject's alternative names.
    case dns
    /// The only e-mail address among the subject's alternative names.
    case email
    /// The only common name of the subject.
    case commonName
  }

  /// Empty: a certificate is asked for by TLS, not by HTTP.
  package let challenge = ""
  private let hub: HubName
  private let source: UserSource
  private let policy: ScopePolicy

  package init(hub: HubName, userFrom source: UserSource, policy: ScopePolicy) {
    self.hub = hub
    self.source = source
    self.policy = policy
  }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal? {
    guard case .certificate(let certificate) = credentials, hub == self.hub, let user = user(of: certificate) else {
      return nil
    }
    return Principal(user: user, scopes: policy.scopes(of: user), validity: Validity { true })
  }

  /// The certificate's user; nil unless it has exactly one name of the configured kind, a valid user name.
  private func user(of certificate: ClientCertificate) -> String? {
    // TLS has verified the certificate: it can be read.
    guard let certificate = try? Certificate(derEncoded: certificate.der) else { return nil }
    let names: [String?]
    switch source {
    case .commonName:
      names = certificate.subject.flatMap { $0 }.filter { $0.type == .RDNAttributeType.commonName }
        .map { String($0.value) }
    case .uri, .dns, .email:
      // A certificate whose extension cannot be read is refused.
      let all = (try? certificate.extensions.subjectAlternativeNames) ?? nil
      names = (all ?? SubjectAlternativeNames([])).compactMap { name in
        switch (name, source) {
        case (.uniformResourceIdentifier(let uri), .uri):
          uri.replacing("%", with: "%25").replacing(":", with: "%3A")
        case (.dnsName(let text), .dns), (.rfc822Name(let text), .email): text
        default: nil
        }
      }
    }
    guard names.count == 1, let user = names[0], UserName.isValid(user) else { return nil }
    return user
  }
}
