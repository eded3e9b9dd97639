import FanfareCore
package import FoundationEssentials

extension SimulatorCredentials {
  /// An app that pushes through WNS, with the credentials of both token flows.
  package struct WindowsApp: SimulatedApp, Codable {
    /// The package SID, `ms-app://S-1-15-2-…`: the client id of `login.live.com`.
    package var packageSID =
      "ms-app://S-1-15-2-\(randomText(10, of: "123456789"))-\(randomText(10, of: "123456789"))"
    /// The secret of the package SID.
    package var packageSecret = randomText(40)
    /// The Entra tenant.
    package var tenantID = Identifier<SimulatorCredentials>.random().description
    /// The application's id in the tenant.
    package var applicationID = Identifier<SimulatorCredentials>.random().description
    /// The application's secret. Secret.
    package var applicationSecret = randomText(40)
  }

  package var windows: WindowsApp {
    get { self[WindowsApp.self] }
    set { self[WindowsApp.self] = newValue }
  }
}

extension SimulatorCredentials.WindowsApp {
  private static let file = "wns.json"
  /// The secret of the package SID by itself.
  private static let secretFile = "wns-secret"

  package static func generate() -> Self { Self() }

  package init(files read: (String) throws -> Data) throws {
    self = try JSONDecoder().decode(Self.self, from: read(Self.file))
  }

  /// Both sets of Microsoft's credentials, JSON.
  package func files(_ endpoints: SimulatorEndpoints?) throws -> [String: Data] {
    [Self.file: try SimulatorCredentials.encode(self), Self.secretFile: Data(packageSecret.utf8)]
  }

  package func keys(_ endpoints: SimulatorEndpoints) -> [String: String] {
    [
      "wns.secretFile": Self.secretFile, "wns.packageSID": packageSID, "wns.tokenEndpoint": endpoints.liveTokenURL,
      "wns.connectHost": endpoints.host, "wns.connectPort": "\(endpoints.port(of: .wns))",
      "wns.trustRootsFile": SimulatorCredentials.FileName.authority,
    ]
  }
}
