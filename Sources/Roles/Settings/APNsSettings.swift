import FanfareCore
import PushServices

/// A hub's credentials and connections for APNs. It exists if `apns.keyFile` is set.
///
/// All keys are under `hub.NAME.`.
///
/// - `apns.keyFile` (text): the `.p8` file; `apns.keyID`, `apns.teamID` (text): ten characters each; `apns.topic`
///   (text): the bundle id.
/// - `apns.keyIDFile` (text): a file with the key id, instead of `apns.keyID`. With it the key can be replaced without
///   a restart.
/// - `apns.host` (text, default `api.push.apple.com`; development builds: `api.sandbox.push.apple.com`), `apns.port`
///   (1…65535, default 443)
/// - `apns.trustRootsFile` (text): certificates (PEM) to trust instead of the system's.
/// - `apns.maximumConnections` (1…1000, default 4): also applies to a simulator.
struct APNsSettings: Sendable {
  let configuration: APNsConfiguration
  /// The key file, which exists if the settings do.
  private let keyFile: SecretFile?
  /// The key file and, if configured, the file with the key's id.
  let files: [String]
  /// Whether the key's id comes from a file.
  var hasKeyIDFile: Bool { files.count > 1 }

  init?(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).apns"
    let keyFile = try reader.secretFile(at: "\(prefix).keyFile")
    let key = try keyFile?.text()
    let (givenID, keyIDFile) = try reader.oneOf("\(prefix).keyID", "\(prefix).keyIDFile")
    var keyID = givenID
    if let keyIDFile { keyID = try Self.keyID(at: keyIDFile, key: "\(prefix).keyIDFile") }
    self.keyFile = keyFile
    files = [keyFile?.path, keyIDFile].compactMap(\.self)
    let teamID = try reader.optionalString("\(prefix).teamID")
    let topic = try reader.optionalString("\(prefix).topic")
    var configuration = APNsConfiguration(
      hub: hub, keyID: keyID ?? "", teamID: teamID ?? "", privateKey: key ?? "", topic: topic ?? "")
    configuration.host = try reader.string("\(prefix).host", default: configuration.host)
    configuration.port = try reader.int("\(prefix).port", default: configuration.port, in: 1...65535)
    configuration.trustRoots = try reader.contents(ofFileAt: "\(prefix).trustRootsFile")
    configuration.maximumConnections = try Self.connections(of: hub, from: reader)
    self.configuration = configuration
    guard key != nil else {
      for (name, value) in [("keyID", keyID), ("teamID", teamID), ("topic", topic)] where value != nil {
        throw SettingsError("\(prefix).keyFile", "is missing: \(name) is given without the .p8 file")
      }
      return nil
    }
    for (name, value) in [("keyID", keyID), ("teamID", teamID), ("topic", topic)] where value == nil {
      throw SettingsError("\(prefix).\(name)", "is missing: APNs needs keyFile, keyID, teamID and topic")
    }
  }

  /// The hub's `apns.maximumConnections`.
  static func connections(of hub: HubName, from reader: SettingsReader) throws(SettingsError) -> Int {
    try reader.int("hub.\(hub).apns.maximumConnections", default: 4, in: 1...1000)
  }

  /// Reads the key and its id again. Throws when a file cannot be read.
  func readKey() throws(SettingsError) -> (key: String, id: String) {
    let prefix = "hub.\(configuration.hub).apns"
    let key = try keyFile?.text() ?? ""
    return (key, hasKeyIDFile ? try Self.keyID(at: files[1], key: "\(prefix).keyIDFile") : configuration.keyID)
  }

  private static func keyID(at path: String, key: String) throws(SettingsError) -> String {
    try SettingsReader.contents(of: path, key: key).trimmingSuffix { $0.isWhitespace }
  }
}
