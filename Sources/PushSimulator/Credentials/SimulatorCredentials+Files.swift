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
    /// The keys with which a hub pushes to the simulator, YAML.
    package static let hub = "hub.yaml"
    /// Where the simulator listens, JSON. It is written last.
    package static let endpoints = "endpoints.json"
  }

  /// Writes the files into a directory and creates it if necessary; only the owner can read those with secrets. With
  /// endpoints, the service account's `token_uri` is the simulator's, and a hub's keys and the endpoints are written too.
  package func write(to directory: String, endpoints: SimulatorEndpoints? = nil) throws {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    func write(_ name: String, _ data: Data, permissions: Int = 0o600) throws {
      try Self.write(data, to: directory + "/" + name, permissions: permissions)
    }
    try write(FileName.authority, Data(authorityPEM.utf8), permissions: 0o644)
    try write(FileName.certificate, Data(certificatePEM.utf8), permissions: 0o644)
    try write(FileName.certificateKey, Data(certificateKeyPEM.utf8))
    for app in apps {
      for (name, data) in try app.files(endpoints) { try write(name, data) }
    }
    guard let endpoints else { return }
    let keys = apps.reduce(into: [:]) { $0.merge($1.keys(endpoints)) { $1 } }.sorted { $0.key < $1.key }
    try write(FileName.hub, Data(keys.map { "\($0.key): \($0.value)\n" }.joined().utf8), permissions: 0o644)
    try write(FileName.endpoints, Self.encode(endpoints), permissions: 0o644)
  }

  static func encode(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }

  /// Reads the files of `write(to:)`. Throws the errors of the file system and the decoder.
  package init(contentsOf directory: String) throws {
    func read(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: directory + "/" + name)) }
    func text(_ name: String) throws -> String { String(decoding: try read(name), as: UTF8.self) }
    self.init(
      authorityPEM: try text(FileName.authority), certificatePEM: try text(FileName.certificate),
      certificateKeyPEM: try text(FileName.certificateKey),
      apps: try SimulatedPushServices.all.map { try $0.readApp(read) })
  }

  /// Whether the directory holds the files of `write(to:)`.
  package static func exist(in directory: String) -> Bool {
    FileManager.default.fileExists(atPath: directory + "/" + FileName.certificate)
  }

  private static func write(_ data: Data, to path: String, permissions: Int) throws {
    // The empty file gets its permissions before it has content; the second write keeps them.
    guard FileManager.default.createFile(atPath: path, contents: Data(), attributes: [.posixPermissions: permissions])
    else { throw CocoaError(.fileWriteUnknown) }
    try data.write(to: URL(filePath: path))
  }
}
