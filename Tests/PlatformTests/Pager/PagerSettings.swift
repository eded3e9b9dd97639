import FanfareCore
import PushServices
import SettingsTable

/// A hub's account at the invented push service.
struct PagerSettings: PushServiceSettings {
  static let platform = Pager.platform

  struct Keys: Sendable {
    @Setting(example: "/etc/fanfare/pager-secret", "read again when it changes") var secretFile: SecretFile?
    @Setting("the URL of the service") var url = "https://pager.example"
    @Setting(contents: "roots.pem", "replaces the system's trust roots") var trustRootsFile: String?
  }

  private static let keys = SettingsSection("hub.NAME.pager", Keys())
  static var declaration: SettingsDeclaration { keys.declaration }

  private let file: SecretFile?
  private let url: String
  private let trustRoots: String?

  init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys, of: hub.rawValue)
    (file, url, trustRoots) = (keys.secretFile, keys.url, keys.trustRootsFile)
  }

  var files: [String] { file.map { [$0.path] } ?? [] }

  func sender(_ resources: SenderResources) throws -> RenewableSender {
    let sender = PagerSender(url: url, secret: try file?.text() ?? "", trustRoots: trustRoots, resources)
    return RenewableSender(sender, files: files) { sender.use(secret: try file?.text() ?? "") }
  }
}

extension Pager: ServedPlatform {
  typealias Settings = PagerSettings
}
