import FanfareCore
import Logging
import PushServices
package import RDKafka
import SettingsTable

/// TLS and authentication towards Kafka.
///
/// They exist if any of the keys is set. Then TLS is on, unless `tls` is false.
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

  struct Keys: Sendable {
    @Setting(example: true, "false: SASL in plain text, inside a network that is trusted") var tls: Bool?
    @Setting(example: "roots.pem", "replaces the system's trust roots") var trustRootsFile: String?
    @Setting(example: "/etc/fanfare/kafka.pem", "the client's certificate with its chain") var certificateFile: String?
    @Setting(example: "/etc/fanfare/kafka-key.pem", "its private key") var keyFile: SecretFile?
    @Setting(example: "/etc/fanfare/kafka-key-password", "the password of that key") var keyPasswordFile: SecretFile?
    @Setting("how to authenticate by SASL; librdkafka before 2.6.1 cannot do SCRAM with Kafka 4.0 and later")
    var mechanism = Mechanism.none
    @Setting(example: "fanfare", "for PLAIN and SCRAM") var user: String?
    @Setting(example: "/etc/fanfare/kafka-password", "read again when it changes") var passwordFile: SecretFile?
  }

  static let keys = SettingsSection("kafka.security", Keys(), "Any key that is set turns TLS on.")

  init?(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    let (prefix, mechanism) = (Self.keys.prefix, keys.mechanism)
    let (trustRoots, certificate, key) = (keys.trustRootsFile, keys.certificateFile, keys.keyFile)
    let (keyPassword, user, passwordFile) = (keys.keyPasswordFile, keys.user, keys.passwordFile)
    let oauth = try reader.read(OAuthSettings.keys)
    let isMeant =
      trustRoots != nil || certificate != nil || key != nil || mechanism != .none || user != nil || passwordFile != nil
      || oauth.isMeant
    let wantsTLS = keys.tls ?? isMeant
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

/// OAuth 2 tokens for Kafka by the client credentials grant. The secret is read for each request for a token.
struct OAuthSettings: Sendable {
  @Setting(example: "https://login.example.com/oauth2/token", "of the identity provider") var tokenEndpoint: String?
  @Setting(example: "fanfare", "of the client credentials grant") var clientID: String?
  @Setting(example: "/etc/fanfare/kafka-client-secret", "read for each token") var clientSecretFile: SecretFile?
  @Setting(example: "kafka", "of the tokens") var scope: String?
  @Setting("SASL extensions: [\"logicalCluster=lkc-1\", …]") var extensions: [String: String] = [:]
  @Setting(contents: "roots.pem", "for the token endpoint; replaces the system's trust roots")
  var trustRootsFile: String?

  static let keys = SettingsSection("kafka.security.oauth", OAuthSettings(), "For OAUTHBEARER.")

  var isMeant: Bool {
    tokenEndpoint != nil || clientID != nil || clientSecretFile != nil || scope != nil || !extensions.isEmpty
      || trustRootsFile != nil
  }

  func source() throws(SettingsError) -> OAuthTokenSource {
    func required<Value>(_ name: String, _ value: Value?) throws(SettingsError) -> Value {
      guard let value else { throw SettingsError("\(Self.keys.prefix).\(name)", "is missing: OAUTHBEARER needs it") }
      return value
    }
    let endpoint = try required("tokenEndpoint", tokenEndpoint)
    let client = try required("clientID", clientID)
    let secret = try required("clientSecretFile", clientSecretFile)
    _ = try secret.text()
    do throws(PushConfigurationError) {
      let credentials = try ClientCredentials(
        endpoint: endpoint, clientID: client, scope: scope, trustRoots: trustRootsFile,
        logger: Logger(label: "fanfare.kafka"))
      return OAuthTokenSource(principal: client, extensions: extensions, clock: SystemWallClock()) {
        try await credentials.token(secret: try secret.text())
      }
    } catch {
      let name = error.field == "tokenEndpoint" ? error.field : "trustRootsFile"
      throw SettingsError("\(Self.keys.prefix).\(name)", error.problem)
    }
  }
}
