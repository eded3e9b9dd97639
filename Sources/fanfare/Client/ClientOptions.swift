import ArgumentParser
import FanfareCore
import Foundation

/// The options of the commands that are clients of the HTTP API.
struct ClientOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The hub, instead of the profile's.", valueName: "name"))
  var hub: String?

  @Option(
    help: ArgumentHelp(
      "The file with address and credentials, instead of ~/.config/fanfare/profile.yaml.", valueName: "file"),
    completion: .file(extensions: ["yaml", "yml"]))
  var profile: String?

  func validate() throws {
    if let hub, HubName(hub) == nil { throw ValidationError("--hub must be a hub's name: \(HubName.rule)") }
  }

  /// Runs `body` with a client of the API. Throws `SettingsError` for an unusable profile.
  func withClient<Value>(_ body: (APIClient) async throws -> Value) async throws -> Value {
    let profile = try Profile(path: profile, environment: ProcessInfo.processInfo.environment)
    return try await APIClient.with(profile, hub: hub, body)
  }

  /// The part of a command's help that says where address and credentials come from.
  static let discussion = """
    The address and the credentials come from ~/.config/fanfare/profile.yaml, with the keys url, key (an API key or a \
    token) or user and password, hub, trustRootsFile; or from FANFARE_URL, FANFARE_KEY, FANFARE_USER, \
    FANFARE_PASSWORD, FANFARE_HUB and FANFARE_TRUST_ROOTS_FILE, which win. The file must be readable by its owner alone.
    """
}

/// The id of a send on the command line.
struct SendArgument: ExpressibleByArgument {
  let id: SendID

  init?(argument: String) {
    guard let id = SendID(argument) else { return nil }
    self.id = id
  }
}
