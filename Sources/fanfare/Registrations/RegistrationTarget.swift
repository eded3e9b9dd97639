import ArgumentParser
import FanfareCore
import Logging
import Registry
import Roles

/// Which hub's registrations a command is about.
struct RegistrationTarget: ParsableArguments {
  @Option(help: "The hub whose registrations are meant.")
  var hub = HubName.default.rawValue

  func validate() throws {
    guard HubName(hub) != nil else { throw ValidationError("--hub must be a hub's name: \(HubName.rule)") }
  }

  /// The hub's name, and the store; `patience` and `mustExist` as `RegistrySettings.open` has them. Throws where the
  /// deployment has no such hub.
  func open(
    _ common: CommonOptions, patience: Duration = .zero, mustExist: Bool = false
  ) async throws -> (HubName, any RegistrySettings.Store) {
    let settings = try await common.settings()
    guard let name = HubName(hub), settings.hubs.contains(where: { $0.name == name }) else {
      throw ValidationError("--hub: there is no hub \(hub) in this deployment")
    }
    let logger = Logger(label: "fanfare.registrations")
    let store = try await settings.registry.open(
      role: "registrations", patience: patience, mustExist: mustExist, logger: logger)
    return (name, store)
  }
}
