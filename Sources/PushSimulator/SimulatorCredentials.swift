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
