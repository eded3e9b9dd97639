import FanfareCore
import PushServices
import SettingsTable

/// A hub's account at the invented push service.
struct PagerSettings: PushServiceSettings {
  static let platform = Pager.platform
  static let absentHandle = "0"

  struct Keys: Sendable {
    @Setting(example: "/etc/fanfare/pager-secret", "read again when it changes") var secretFile: SecretFile?
    @Setting("the URL of the service") var url = "https://pager.example"
  }

  private static let keys = SettingsSection("hub.NAME.pager", Keys())
  static var declaration: SettingsDeclaration { keys.declaration }

  private let hub: HubName
  private let file: SecretFile?
  private let url: String

  init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys, of: hub.rawValue)
    (self.hub, file, url) = (hub, keys.secretFile, keys.url)
  }

  var files: [String] { file.map { [$0.path] } ?? [] }

  func sender(_ resources: SenderResources) throws -> RenewableSender {
    let sender = PagerSender(url: url, secret: try file?.text() ?? "", trustRoots: nil, resources)
    return RenewableSender(sender, files: files) { sender.use(secret: try file?.text() ?? "") }
  }

  func sender(to simulator: SimulatorDirectory, _ resources: SenderResources) throws -> RenewableSender {
    let endpoints = try simulator.endpoints()
    let file = simulator.file("pager.txt")
    let sender = PagerSender(
      url: endpoints.httpsURL, secret: try simulator.text(file),
      trustRoots: try simulator.authority(), resources)
    return RenewableSender(sender, files: [file]) { sender.use(secret: try simulator.text(file)) }
  }
}
