/// How a client protects its connections and proves who it is.
///
/// Applied to every handle after the properties of the configuration. Nothing of it is ever logged or described.
package struct KafkaSecurity: Sendable {
  /// The TLS settings; nil for connections in plain text.
  package var tls: TLS?
  /// How the client authenticates by SASL; nil for not at all.
  package var authentication: Authentication?

  package init(tls: TLS? = nil, authentication: Authentication? = nil) {
    (self.tls, self.authentication) = (tls, authentication)
  }

  /// Files in PEM. librdkafka reads them when a handle is created, and never again.
  package struct TLS: Sendable {
    /// The certificates of the trusted authorities; nil for the system's.
    package var authoritiesFile: String?
    /// The client's certificate with its chain, and its private key; both or neither.
    package var certificateFile: String?
    package var keyFile: String?
    package var keyPassword: String?

    package init(
      authoritiesFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil, keyPassword: String? = nil
    ) {
      (self.authoritiesFile, self.certificateFile) = (authoritiesFile, certificateFile)
      (self.keyFile, self.keyPassword) = (keyFile, keyPassword)
    }
  }

  /// The SASL exchange.
  package enum Authentication: Sendable {
    /// User name and password by a mechanism that knows them.
    case password(PasswordMechanism, KafkaPassword)
    /// OAUTHBEARER with the tokens of a source.
    case token(any KafkaTokenSource)
  }

  /// The SASL mechanisms with a password, by their registered names.
  package enum PasswordMechanism: String, Sendable, CaseIterable {
    case plain = "PLAIN"
    case scramSHA256 = "SCRAM-SHA-256"
    case scramSHA512 = "SCRAM-SHA-512"
  }
}

extension KafkaSecurity {
  /// The librdkafka properties, in the order in which they are set.
  var properties: [Property] {
    var properties: [Property] = []
    switch (tls, authentication) {
    case (nil, nil): properties.append(Property("security.protocol", "plaintext"))
    case (nil, _?): properties.append(Property("security.protocol", "sasl_plaintext"))
    case (_?, nil): properties.append(Property("security.protocol", "ssl"))
    case (_?, _?): properties.append(Property("security.protocol", "sasl_ssl"))
    }
    if let tls {
      // The default since 2.0; stated because everything depends on it.
      properties.append(Property("enable.ssl.certificate.verification", "true"))
      properties.append(Property("ssl.endpoint.identification.algorithm", "https"))
      if let file = tls.authoritiesFile { properties.append(Property("ssl.ca.location", file)) }
      if let file = tls.certificateFile { properties.append(Property("ssl.certificate.location", file)) }
      if let file = tls.keyFile { properties.append(Property("ssl.key.location", file)) }
      if let password = tls.keyPassword { properties.append(Property("ssl.key.password", password)) }
    }
    switch authentication {
    case .password(let mechanism, let password):
      let (user, secret) = password.current
      properties.append(Property("sasl.mechanisms", mechanism.rawValue))
      properties.append(Property("sasl.username", user))
      properties.append(Property("sasl.password", secret))
    case .token: properties.append(Property("sasl.mechanisms", "OAUTHBEARER"))
    case nil: break
    }
    return properties
  }

  /// The SASL mechanism in use; nil for none.
  var mechanism: String? {
    switch authentication {
    case .password(let mechanism, _): mechanism.rawValue
    case .token: "OAUTHBEARER"
    case nil: nil
    }
  }
}

extension KafkaSecurity.TLS: CustomStringConvertible, CustomReflectable {
  /// The files, never the password of the key.
  package var description: String {
    "authorities \(authoritiesFile ?? "of the system"), certificate \(certificateFile ?? "none")"
  }

  package var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "authoritiesFile": authoritiesFile as Any, "certificateFile": certificateFile as Any, "keyFile": keyFile as Any,
      ])
  }
}
