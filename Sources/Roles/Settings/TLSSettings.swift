import FrontEnd

/// TLS of the callers' listener. It exists if `api.tls.certificateFile` is set.
///
/// The files are read by the front end alone, and again when they change.
///
/// - `api.tls.certificateFile` (text): the server's certificate and those of intermediate authorities, PEM.
/// - `api.tls.keyFile` (text): its private key, PEM.
/// - `api.tls.clientAuthorityFile` (text): the authorities that issue clients' certificates, PEM.
/// - `api.tls.clientCertificate` (`none`, `optional` or `required`; default `optional` with `clientAuthorityFile`, else
///   `none`): whether a client presents a certificate. One that is presented must be valid.
package struct TLSSettings: Sendable {
  private static let prefix = "api.tls"

  let certificateFile: String
  let keyFile: SecretFile
  let clientAuthorityFile: String?
  let clientCertificates: ServerTLS.ClientCertificates

  init?(from reader: SettingsReader) throws(SettingsError) {
    let certificate = try reader.optionalString("\(Self.prefix).certificateFile")
    let key = try reader.secretFile(at: "\(Self.prefix).keyFile")
    clientAuthorityFile = try reader.optionalString("\(Self.prefix).clientAuthorityFile")
    clientCertificates = try reader.choice(
      "\(Self.prefix).clientCertificate", default: clientAuthorityFile == nil ? .none : .optional)
    guard let certificate else {
      for (name, isGiven) in [
        ("keyFile", key != nil), ("clientAuthorityFile", clientAuthorityFile != nil),
        ("clientCertificate", clientCertificates != .none),
      ] where isGiven {
        throw SettingsError("\(Self.prefix).certificateFile", "is missing: \(name) is given without it")
      }
      return nil
    }
    guard let key else {
      throw SettingsError("\(Self.prefix).keyFile", "is missing: certificateFile is given without its key")
    }
    guard clientCertificates == .none || clientAuthorityFile != nil else {
      throw SettingsError(
        "\(Self.prefix).clientAuthorityFile", "is missing: clientCertificate is \(clientCertificates.rawValue)")
    }
    (certificateFile, keyFile) = (certificate, key)
  }

  /// The files that hold the identity.
  var files: [String] { [certificateFile, keyFile.path] + [clientAuthorityFile].compactMap(\.self) }

  /// Reads the files. Throws an error that names the key of an unusable one.
  func identity() throws(SettingsError) -> ServerTLS.Identity {
    func contents(_ path: String, _ key: String) throws(SettingsError) -> String {
      try SettingsReader.contents(of: path, key: "\(Self.prefix).\(key)")
    }
    do {
      return try ServerTLS.Identity(
        certificates: try contents(certificateFile, "certificateFile"), key: try keyFile.text(),
        clientAuthorities: try clientAuthorityFile.map { try contents($0, "clientAuthorityFile") })
    } catch {
      throw Self.settingsError(error)
    }
  }

  /// Creates TLS from the files. Throws an error that names the key of an unusable one.
  func makeTLS() throws(SettingsError) -> ServerTLS {
    let identity = try identity()
    do { return try ServerTLS(identity, clientCertificates: clientCertificates) } catch {
      throw Self.settingsError(error)
    }
  }

  private static func settingsError(_ error: any Error) -> SettingsError {
    switch error {
    case let error as SettingsError: error
    case ServerTLS.Unusable.certificates:
      SettingsError("\(prefix).certificateFile", "must name a file with certificates in PEM, the server's first")
    case ServerTLS.Unusable.key: SettingsError("\(prefix).keyFile", "must name a file with a private key in PEM")
    case ServerTLS.Unusable.clientAuthorities:
      SettingsError("\(prefix).clientAuthorityFile", "must name a file with certificates in PEM")
    case ServerTLS.Unusable.equalAuthorities:
      SettingsError(
        "\(prefix).clientAuthorityFile",
        "names two authorities with the same subject and different keys; give each another subject, or a subject key "
          + "identifier that the certificates they issue refer to")
    default: SettingsError("\(prefix).keyFile", "must be the private key of the first certificate in certificateFile")
    }
  }
}
