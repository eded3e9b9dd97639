import FanfareCore
import Logging
import PushServices
package import RDKafka

/// TLS and authentication towards Kafka. All keys are under `kafka.security.`.
///
/// They exist if any of the keys is set. Then TLS is on, unless `tls` is false.
///
/// - `tls` (true or false): false for SASL in plain text, inside a network that is trusted.
/// - `trustRootsFile` (text): certificates (PEM) to trust instead of the system's.
/// - `certificateFile`, `keyFile` (text): the client's certificate with its chain, and its private key (PEM).
/// - `keyPasswordFile` (text): a file with the password of that key.
/// - `mechanism` (`none`, `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`, default `none`): how to
///   authenticate by SASL. librdkafka before 2.6.1 cannot do SCRAM with Kafka 4.0 and later.
/// - `user` (text), `passwordFile` (text): for PLAIN and SCRAM. A new password is used when the file changes.
/// - `oauth.tokenEndpoint` (https URL), `oauth.clientID` (text), `oauth.clientSecretFile` (text), `oauth.scope` (text):
///   for OAUTHBEARER, the client credentials grant. The secret is read for each request for a token.
/// - `oauth.extensions` (list of `key=value`): SASL extensions, such as `logicalCluster=lkc-1`.
/// - `oauth.trustRootsFile` (text): certificates (PEM) to trust for the token endpoint instead of the system's.
package struct KafkaSecuritySettings: Sendable {
  enum Mechanism: String, CaseIterable, Sendable {
    case none
    case plain = "PLAIN"
    case scramSHA256 = "SCRAM-SHA-256"
    case scramSHA512 = "SCRAM-SHA-512"
    case oauthBearer = "OAUTHBEARER"
  }

  /// For the clients of all roles of the process, which share its password and tokens.
  package let security: KafkaSecurity
  /// The user's password and its file, for PLAIN and SCRAM.
  let password: (user: String, file: SecretFile, shared: KafkaPassword)?
  /// The files that librdkafka reads when a client is created.
  let tlsFiles: [String]

  /// The librdkafka properties that these settings replace.
  static let replacedProperties: Set<String> = [
    "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
    "enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.config", "sasl.oauthbearer.method",
    "enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password",
  ]

  init?(from reader: SettingsReader) throws(SettingsError) {
    let prefix = "kafka.security"
    let trustRoots = try reader.optionalString("\(prefix).trustRootsFile")
    let certificate = try reader.optionalString("\(prefix).certificateFile")
    let key = try reader.secretFile(at: "\(prefix).keyFile")
    let keyPassword = try reader.secretFile(at: "\(prefix).keyPasswordFile")
    let mechanism: Mechanism = try reader.choice("\(prefix).mechanism", default: .none)
    let user = try reader.optionalString("\(prefix).user")
    let passwordFile = try reader.secretFile(at: "\(prefix).passwordFile")
    let oauth = try OAuthSettings(from: reader)
    let isMeant =
      trustRoots != nil || certificate != nil || key != nil || mechanism != .none || user != nil || passwordFile != nil
      || oauth.isMeant
    let wantsTLS = try reader.bool("\(prefix).tls", default: isMeant)
    guard isMeant || wantsTLS else { return nil }

    guard wantsTLS || (trustRoots == nil && certificate == nil && key == nil) else {
      throw SettingsError("\(prefix).tls", "must not be false while files of certificates or keys are given")
    }
    guard (certificate == nil) == (key == nil) else {
      throw SettingsError(
        certificate == nil ? "\(prefix).certificateFile" : "\(prefix).keyFile",
        "is missing: a client certificate needs certificateFile and keyFile")
    }
    guard keyPassword == nil || key != nil else {
      throw SettingsError("\(prefix).keyFile", "is missing: keyPasswordFile is given without it")
    }
    var security = KafkaSecurity()
    if wantsTLS {
      // librdkafka's own error would not name the key.
      for (name, path) in [("trustRootsFile", trustRoots), ("certificateFile", certificate)] {
        if let path { _ = try SettingsReader.contents(of: path, key: "\(prefix).\(name)") }
      }
      _ = try key?.text()
      security.tls = KafkaSecurity.TLS(
        authoritiesFile: trustRoots, certificateFile: certificate, keyFile: key?.path,
        keyPassword: try keyPassword?.text())
    }
    tlsFiles = [trustRoots, certificate, key?.path].compactMap(\.self)

    var password: (user: String, file: SecretFile, shared: KafkaPassword)?
    switch mechanism {
    case .none:
      guard user == nil, passwordFile == nil, !oauth.isMeant else {
        throw SettingsError("\(prefix).mechanism", "is missing: user, passwordFile or oauth is given without it")
      }
    case .plain, .scramSHA256, .scramSHA512:
      guard let user else { throw SettingsError("\(prefix).user", "is missing: \(mechanism.rawValue) needs it") }
      guard let passwordFile else {
        throw SettingsError("\(prefix).passwordFile", "is missing: \(mechanism.rawValue) needs it")
      }
      let shared = KafkaPassword(user: user, password: try passwordFile.text())
      password = (user, passwordFile, shared)
      // The raw values are those of the settings.
      if let mechanism = KafkaSecurity.PasswordMechanism(rawValue: mechanism.rawValue) {
        security.authentication = .password(mechanism, shared)
      }
    case .oauthBearer: security.authentication = .token(try oauth.source())
    }
    self.password = password
    self.security = security
  }

  /// Reads the password's file again and gives the clients its contents. Returns false if they have it already.
  func renewPassword() throws -> Bool {
    guard let password else { return false }
    return try password.shared.replace(user: password.user, password: try password.file.text())
  }
}

/// The keys `kafka.security.oauth.…`; see ``KafkaSecuritySettings``.
private struct OAuthSettings {
  private static let prefix = "kafka.security.oauth"

  let tokenEndpoint: String?
  let clientID: String?
  let secret: SecretFile?
  let scope: String?
  let extensions: [String: String]
  let trustRoots: String?

  init(from reader: SettingsReader) throws(SettingsError) {
    tokenEndpoint = try reader.optionalString("\(Self.prefix).tokenEndpoint")
    clientID = try reader.optionalString("\(Self.prefix).clientID")
    secret = try reader.secretFile(at: "\(Self.prefix).clientSecretFile")
    scope = try reader.optionalString("\(Self.prefix).scope")
    extensions = try reader.pairs("\(Self.prefix).extensions")
    trustRoots = try reader.contents(ofFileAt: "\(Self.prefix).trustRootsFile")
  }

  var isMeant: Bool {
    tokenEndpoint != nil || clientID != nil || secret != nil || scope != nil || !extensions.isEmpty
      || trustRoots != nil
  }

  func source() throws(SettingsError) -> OAuthTokenSource {
    func required<Value>(_ name: String, _ value: Value?) throws(SettingsError) -> Value {
      guard let value else { throw SettingsError("\(Self.prefix).\(name)", "is missing: OAUTHBEARER needs it") }
      return value
    }
    let endpoint = try required("tokenEndpoint", tokenEndpoint)
    let client = try required("clientID", clientID)
    let secret = try required("clientSecretFile", secret)
    _ = try secret.text()
    do throws(PushConfigurationError) {
      let credentials = try ClientCredentials(
        endpoint: endpoint, clientID: client, scope: scope, trustRoots: trustRoots,
        logger: Logger(label: "fanfare.kafka"))
      return OAuthTokenSource(principal: client, extensions: extensions, clock: SystemWallClock()) {
        try await credentials.token(secret: try secret.text())
      }
    } catch {
      let name = error.field == "tokenEndpoint" ? error.field : "trustRootsFile"
      throw SettingsError("\(Self.prefix).\(name)", error.problem)
    }
  }
}
