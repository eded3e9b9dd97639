import FoundationEssentials

/// The credentials as files in the vendors' formats, for another process.
extension SimulatorCredentials {
  /// The names of the files in a directory of credentials.
  package enum FileName {
    /// The root to trust, PEM.
    package static let authority = "ca.pem"
    /// The listeners' certificate, PEM.
    package static let certificate = "server.pem"
    /// Its key, PEM.
    package static let certificateKey = "server-key.pem"
    /// The APNs key.
    package static let apnsKey = "apns.p8"
    /// The ids that belong to the APNs key, JSON.
    package static let apns = "apns.json"
    /// The service account's key file, JSON as Google hands it out.
    package static let serviceAccount = "service-account.json"
    /// Both sets of Microsoft's credentials, JSON.
    package static let windows = "wns.json"
    /// Where the simulator listens, JSON.
    package static let endpoints = "endpoints.json"
  }

  /// Writes the files into a directory and creates it if necessary; only the owner can read those with secrets. With
  /// endpoints, the service account's `token_uri` is the simulator's, and `endpoints.json` is written too.
  package func write(to directory: String, endpoints: SimulatorEndpoints? = nil) throws {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    func write(_ name: String, _ data: Data, permissions: Int = 0o600) throws {
      try Self.write(data, to: directory + "/" + name, permissions: permissions)
    }
    try write(FileName.authority, Data(authorityPEM.utf8), permissions: 0o644)
    try write(FileName.certificate, Data(certificatePEM.utf8), permissions: 0o644)
    try write(FileName.certificateKey, Data(certificateKeyPEM.utf8))
    for (name, data) in try apnsFiles() { try write(name, data) }
    for (name, data) in try googleFiles(endpoints: endpoints) { try write(name, data) }
    try write(FileName.windows, Self.encode(windows))
    if let endpoints { try write(FileName.endpoints, Self.encode(endpoints), permissions: 0o644) }
  }

  /// The files of the app at APNs, by name.
  func apnsFiles() throws -> [String: Data] {
    let ids = APNsFile(keyID: apns.keyID, teamID: apns.teamID, bundleIDs: apns.bundleIDs)
    return [FileName.apnsKey: Data(apns.privateKeyPEM.utf8), FileName.apns: try Self.encode(ids)]
  }

  /// The file of Google's service account, by name; see `write(to:endpoints:)`.
  func googleFiles(endpoints: SimulatorEndpoints?) throws -> [String: Data] {
    let account = ServiceAccountFile(google, tokenURI: endpoints?.googleTokenURL ?? GoogleToken.audience)
    return [FileName.serviceAccount: try Self.encode(account)]
  }

  private static func encode(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }

  /// Reads the files of `write(to:)`. Throws the errors of the file system and the decoder.
  package init(contentsOf directory: String) throws {
    func read(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: directory + "/" + name)) }
    func text(_ name: String) throws -> String { String(decoding: try read(name), as: UTF8.self) }
    let decoder = JSONDecoder()
    let apns = try decoder.decode(APNsFile.self, from: read(FileName.apns))
    let account = try decoder.decode(ServiceAccountFile.self, from: read(FileName.serviceAccount))
    self.init(
      authorityPEM: try text(FileName.authority), certificatePEM: try text(FileName.certificate),
      certificateKeyPEM: try text(FileName.certificateKey),
      apns: APNsApp(
        privateKeyPEM: try text(FileName.apnsKey), keyID: apns.keyID, teamID: apns.teamID, bundleIDs: apns.bundleIDs),
      google: GoogleServiceAccount(
        projectID: account.projectID, clientEmail: account.clientEmail, privateKeyID: account.privateKeyID,
        privateKeyPEM: account.privateKey),
      windows: try decoder.decode(WindowsApp.self, from: read(FileName.windows)))
  }

  /// Whether the directory holds the files of `write(to:)`.
  package static func exist(in directory: String) -> Bool {
    FileManager.default.fileExists(atPath: directory + "/" + FileName.windows)
  }

  private static func write(_ data: Data, to path: String, permissions: Int) throws {
    // The empty file gets its permissions before it has content; the second write keeps them.
    guard FileManager.default.createFile(atPath: path, contents: Data(), attributes: [.posixPermissions: permissions])
    else { throw CocoaError(.fileWriteUnknown) }
    try data.write(to: URL(filePath: path))
  }
}

private struct APNsFile: Codable {
  let keyID: String
  let teamID: String
  let bundleIDs: [String]

  enum CodingKeys: String, CodingKey {
    case keyID = "key_id"
    case teamID = "team_id"
    case bundleIDs = "bundle_ids"
  }
}

/// The members of Google's key file that senders use.
private struct ServiceAccountFile: Codable {
  var type = "service_account"
  let projectID: String
  let privateKeyID: String
  let privateKey: String
  let clientEmail: String
  let tokenURI: String

  enum CodingKeys: String, CodingKey {
    case type
    case projectID = "project_id"
    case privateKeyID = "private_key_id"
    case privateKey = "private_key"
    case clientEmail = "client_email"
    case tokenURI = "token_uri"
  }

  init(_ account: SimulatorCredentials.GoogleServiceAccount, tokenURI: String) {
    projectID = account.projectID
    privateKeyID = account.privateKeyID
    privateKey = account.privateKeyPEM
    clientEmail = account.clientEmail
    self.tokenURI = tokenURI
  }
}
