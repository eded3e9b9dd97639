package import FanfareCore
package import SettingsTable

/// A hub's credentials and connections for APNs.
package struct APNsSettings: PushServiceSettings {
  package static let platform = Platform.apns
  package static var declaration: SettingsDeclaration { keys.declaration }

  package let configuration: APNsConfiguration
  /// Exists if the hub has credentials.
  private let keyFile: SecretFile?
  /// The key file and, if configured, the file with the key's id.
  package let files: [String]
  /// Whether the key's id comes from a file.
  package var hasKeyIDFile: Bool { files.count > 1 }
  package var maximumConnections: Int? { configuration.maximumConnections }

  private static let standard = APNsConfiguration(
    hub: .default, keyID: "", teamID: "", privateKey: "", topic: "")

  struct Keys: Sendable {
    @Setting(example: "/etc/fanfare/AuthKey_ABC123DEFG.p8", "read again when it changes") var keyFile: SecretFile?
    @Setting(example: "ABC123DEFG", "ten characters") var keyID: String?
    @Setting(
      example: "/etc/fanfare/apns-key-id",
      "a file with the key's id in place of keyID, so that the key can be "
        + "replaced without a restart; its environment variable ends with _APNS_KEY_ID_FILE")
    var keyIDFile: String?
    @Setting(example: "DEF123GHIJ", "ten characters") var teamID: String?
    @Setting(example: "com.example.app", "the bundle id") var topic: String?
    @Setting("development builds: api.sandbox.push.apple.com")
    var host = standard.host
    @Setting(in: 1...65535, "of the host")
    var port = standard.port
    @Setting(contents: "roots.pem", "replaces the system's trust roots")
    var trustRootsFile: String?
    @Setting(in: 1...1000, "also to a simulator") var maximumConnections = standard.maximumConnections
  }

  static let keys = SettingsSection("hub.NAME.apns", Keys())

  package init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).apns"
    let keys = try reader.read(Self.keys, of: hub.rawValue)
    let (keyFile, teamID, topic) = (keys.keyFile, keys.teamID, keys.topic)
    let key = try keyFile?.text()
    let (givenID, keyIDFile) = try reader.oneOf("\(prefix).keyID", "\(prefix).keyIDFile")
    var keyID = givenID
    if let keyIDFile { keyID = try Self.keyID(at: keyIDFile, key: "\(prefix).keyIDFile") }
    self.keyFile = keyFile
    files = [keyFile?.path, keyIDFile].compactMap(\.self)
    var configuration = APNsConfiguration(
      hub: hub, keyID: keyID ?? "", teamID: teamID ?? "", privateKey: key ?? "", topic: topic ?? "")
    (configuration.host, configuration.port) = (keys.host, keys.port)
    (configuration.trustRoots, configuration.maximumConnections) = (keys.trustRootsFile, keys.maximumConnections)
    self.configuration = configuration
    guard key != nil else {
      for (name, value) in [("keyID", keyID), ("teamID", teamID), ("topic", topic)] where value != nil {
        throw SettingsError("\(prefix).keyFile", "is missing: \(name) is given without the .p8 file")
      }
      return
    }
    for (name, value) in [("keyID", keyID), ("teamID", teamID), ("topic", topic)] where value == nil {
      throw SettingsError("\(prefix).\(name)", "is missing: APNs needs keyFile, keyID, teamID and topic")
    }
  }

  package func sender(_ resources: SenderResources) throws -> RenewableSender {
    let sender = try APNsSender(configuration, resources)
    return RenewableSender(sender, files: files) {
      let (key, id) = try readKey()
      return try sender.use(privateKey: key, keyID: id)
    }
  }

  package func key(of field: String) -> String {
    switch field {
    case "privateKey": "keyFile"
    case "keyID" where hasKeyIDFile: "keyIDFile"
    case "trustRoots": "trustRootsFile"
    default: field
    }
  }

  /// Reads the key and its id again. Throws when a file cannot be read.
  package func readKey() throws(SettingsError) -> (key: String, id: String) {
    let prefix = "hub.\(configuration.hub).apns"
    let key = try keyFile?.text() ?? ""
    return (key, hasKeyIDFile ? try Self.keyID(at: files[1], key: "\(prefix).keyIDFile") : configuration.keyID)
  }

  private static func keyID(at path: String, key: String) throws(SettingsError) -> String {
    try SettingsReader.contents(of: path, key: key).trimmingSuffix { $0.isWhitespace }
  }
}

extension APNs: ServedPlatform {
  package typealias Settings = APNsSettings
}
