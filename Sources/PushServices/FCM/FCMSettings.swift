package import FanfareCore
package import SettingsTable

/// A hub's Firebase project.
package struct FCMSettings: PushServiceSettings {
  package static let platform = Platform.fcm
  package static var declaration: SettingsDeclaration { keys.declaration }

  /// The project and the connections; nil without a key file.
  package let configuration: FCMConfiguration?
  /// The service account's key file.
  package let file: SecretFile?
  package let maximumConnections: Int?
  package let pushesPerMinute: Int?

  /// Google's default quota for a project.
  static let defaultQuota = 600_000

  struct Keys: Sendable {
    @Setting(example: "/etc/fanfare/service-account.json", "read again when it changes")
    var serviceAccountFile: SecretFile?
    @Setting("for a test double") var host = "fcm.googleapis.com"
    @Setting(in: 1...65535, "of the host") var port = 443
    @Setting(example: "https://oauth2.googleapis.com/token", "replaces token_uri of the key file")
    var tokenEndpoint: String?
    @Setting(contents: "roots.pem", "replaces the system's trust roots") var trustRootsFile: String?
    @Setting(in: 1...1000, "also to a simulator") var maximumConnections = StreamLimits.fcm.connections
    @Setting(
      in: 1...100_000_000, example: defaultQuota,
      "the quota of the FCM project, shared by all workers: the most "
        + "pushes in any 60 seconds; as many as shown by default; a simulator has a quota only if this key is set")
    var maximumPerMinute: Int?
  }

  static let keys = SettingsSection("hub.NAME.fcm", Keys())

  package init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys, of: hub.rawValue)
    (file, maximumConnections) = (keys.serviceAccountFile, keys.maximumConnections)
    pushesPerMinute = keys.maximumPerMinute ?? (file == nil ? nil : Self.defaultQuota)
    guard let file else {
      configuration = nil
      return
    }
    let account = try file.text()
    do {
      var configuration = FCMConfiguration(hub: hub, serviceAccount: try ServiceAccountKey(json: Array(account.utf8)))
      configuration.host = keys.host
      configuration.port = keys.port
      configuration.tokenEndpoint = keys.tokenEndpoint
      configuration.trustRoots = keys.trustRootsFile
      configuration.maximumConnections = keys.maximumConnections
      self.configuration = configuration
    } catch {
      throw SettingsError("hub.\(hub).fcm.serviceAccountFile", "cannot be used: \(error)")
    }
  }

  package var files: [String] { file.map { [$0.path] } ?? [] }

  package func sender(_ resources: SenderResources) throws -> RenewableSender {
    guard let configuration, let file else {
      throw PushConfigurationError(field: "serviceAccountFile", problem: "is missing")
    }
    let sender = try FCMSender(configuration, resources)
    return RenewableSender(sender, files: files) {
      try sender.use(ServiceAccountKey(json: Array(try file.text().utf8)))
    }
  }
}

extension FCM: ServedPlatform {
  package typealias Settings = FCMSettings
}
