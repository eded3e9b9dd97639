import Operations
import PushSimulator
import ServiceLifecycle

/// The push services' doubles as a role.
enum SimulatorRole {
  static func services(_ runtime: Runtime) throws -> RoleServices {
    let settings = runtime.settings.simulator
    let simulator = try make(settings, runtime: runtime)
    return RoleServices(services: [
      simulator,
      Announcement(name: "simulator", file: nil, logger: runtime.logger) {
        let endpoints = try await simulator.ready()
        try simulator.credentials.write(to: settings.directory, endpoints: endpoints)
        return endpoints.adminURL
      },
      runtime.operations(checks: []),
    ])
  }

  /// A simulator with the keys of its directory where there are some.
  static func make(_ settings: SimulatorSettings, runtime: Runtime) throws -> PushSimulator {
    var configuration = settings.configuration
    if SimulatorCredentials.exist(in: settings.directory) {
      configuration.credentials = try SimulatorCredentials(contentsOf: settings.directory)
    }
    return try PushSimulator(configuration: configuration, eventLoopGroup: runtime.eventLoopGroup, logger: runtime.logger)
  }
}
