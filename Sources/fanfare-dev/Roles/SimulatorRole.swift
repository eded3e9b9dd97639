import Logging
import Operations
import PushSimulator
import Roles
import ServiceLifecycle

/// The push services' doubles as a role.
enum SimulatorRole {
  static func services(_ runtime: Runtime, _ settings: SimulatorSettings) throws -> RoleServices {
    let simulator = try make(settings, runtime: runtime)
    let announcement = Announcement(name: "simulator", file: nil, logger: runtime.logger) {
      let endpoints = try await simulator.ready()
      do { try simulator.credentials.write(to: settings.directory, endpoints: endpoints) } catch {
        throw SettingsError("simulator.directory", "must be a directory that can be made and written: \(error)")
      }
      return endpoints.adminURL
    }
    return RoleServices(
      services: [
        // The kernel does not say which of the four ports it refused.
        Listener(
          section: "simulator", ports: "simulator.apnsPort, fcmPort, httpsPort or adminPort", service: simulator),
        announcement,
      ] + runtime.operations(checks: []))
  }

  /// A simulator with the keys of its directory where there are some, and with another certificate where theirs has
  /// ended or soon will.
  static func make(_ settings: SimulatorSettings, runtime: Runtime) throws -> PushSimulator {
    var configuration = settings.configuration
    if SimulatorCredentials.exist(in: settings.directory) {
      do {
        var credentials = try SimulatorCredentials(contentsOf: settings.directory)
        if try credentials.renewCertificate() {
          runtime.logger.warning(
            "simulator's certificate was about to end: ca.pem is another now",
            metadata: ["file": "\(settings.directory)"])
        }
        configuration.credentials = credentials
      } catch {
        throw SettingsError("simulator.directory", "has keys that cannot be used: \(error)")
      }
    }
    do {
      return try PushSimulator(
        configuration: configuration, eventLoopGroup: runtime.eventLoopGroup, logger: runtime.logger)
    } catch let error as SimulatorConfigurationError {
      throw SettingsError("simulator.\(error.field)", error.problem)
    }
  }
}
