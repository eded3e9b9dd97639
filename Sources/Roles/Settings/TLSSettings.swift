import FrontEnd
import HTTPServer
import SettingsTable

/// TLS of the callers' listener. It exists if `api.tls.certificateFile` is set.
///
/// The files are read by the front end alone, and again when they change.
struct TLSSettings: Sendable {
  struct Keys: Sendable {
    @Setting(example: "/etc/fanfare/tls/cert.pem", "the server's certificate, then those of intermediate authorities")
    var certificateFile: String?
    @Setting(example: "/etc/fanfare/tls/key.pem", "its private key") var keyFile: SecretFile?
    @Setting(example: "/etc/fanfare/tls/clients.pem", "the authorities of clients' certificates")
    var clientAuthorityFile: String?
    @Setting(
      example: .optional,
      "whether a client presents a certificate, which must be valid; by default optional with "
        + "clientAuthorityFile, else none")
    var clientCertificate: ServerTLS.ClientCertificates?
  }

  static let keys = SettingsSection(
    "api.tls", Keys(),
    "Without TLS the api listens beyond loopback only if proxies are named. The files are read again when they change.")
  private static let prefix = keys.prefix

  let certificateFile: String
  let keyFile: SecretFile
  let clientAuthorityFile: String?
  let clientCertificates: ServerTLS.ClientCertificates

  init?(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    let (certificate, key) = (keys.certificateFile, keys.keyFile)
    clientAuthorityFile = keys.clientAuthorityFile
    clientCertificates = keys.clientCertificate ?? (clientAuthorityFile == nil ? .none : .optional)
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
