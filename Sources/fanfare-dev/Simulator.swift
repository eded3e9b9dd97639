import ArgumentParser
import Logging
import Operations
import PushSimulator
import Roles
import ServiceLifecycle

/// `fanfare-dev simulator`
struct SimulatorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulator",
    abstract: "Simulates APNs, FCM and WNS over real TLS, with faults on demand.",
    discussion: """
      Creates an app's keys and secrets in simulator.directory unless they exist, and writes its addresses there. A \
      hub with hub.NAME.simulator set to that directory pushes to it. The admin address, which it prints, shows the \
      notifications of every device.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.runWorkshop("simulator") { runtime, workshop in
      try SimulatorRole.services(runtime, workshop.simulator)
    }
  }
}

/// The simulated push services as a role.
enum SimulatorRole {
  static func services(_ runtime: Runtime, _ settings: SimulatorSettings) throws -> RoleServices {
    let simulator = try make(settings, runtime: runtime)
    let announcement = Announcement(name: "simulator", file: nil, logger: runtime.logger) {
      let endpoints = try await simulator.ready()
      do { try simulator.credentials.write(to: settings.directory, endpoints: endpoints) } catch {
        throw SettingsError(
          "simulator.directory", "must be a directory that can be created and written: \(ErrorWords.text(error))")
      }
      return endpoints.adminURL
    }
    var role = RoleServices(
      services: [
        // The kernel does not say which of the four ports it refused.
        Listener(
          section: "simulator", ports: "simulator.apnsPort, fcmPort, httpsPort or adminPort", service: simulator),
        announcement,
      ])
    role.addOperations(runtime)
    return role
  }

  /// Creates a simulator with the keys in its directory, if any.
  ///
  /// Renews a certificate that is about to expire.
  static func make(_ settings: SimulatorSettings, runtime: Runtime) throws -> PushSimulator {
    var configuration = settings.configuration
    if SimulatorCredentials.exist(in: settings.directory) {
      do {
        var credentials = try SimulatorCredentials(contentsOf: settings.directory)
        if try credentials.renewCertificate() {
          runtime.logger.warning(
            "Simulator certificate renewed because it was about to expire",
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

/// The simulator's addresses and the directory of its keys.
///
/// - `simulator.directory` (text, default `fanfare-simulator`): keys, certificates and `endpoints.json`. Missing
///   files are created, existing ones are used again.
/// - `simulator.host` (`127.0.0.1` or `localhost`, default `127.0.0.1`)
/// - `simulator.apnsPort`, `simulator.fcmPort`, `simulator.httpsPort`, `simulator.adminPort` (0…65535, default 0): 0
///   lets the kernel choose.
/// - `simulator.recordsPushes` (true or false, default true): whether notifications are kept for reading; false for a
///   sink under load.
/// - `simulator.notificationsPerDevice` (1…1,000,000, default 50): the number of newest notifications kept for each
///   device. The counts include all.
struct SimulatorSettings: Sendable {
  let directory: String
  let configuration: SimulatorConfiguration

  init(from reader: SettingsReader) throws(SettingsError) {
    directory = try reader.string("simulator.directory", default: "fanfare-simulator")
    var configuration = SimulatorConfiguration()
    configuration.host = try reader.string("simulator.host", default: configuration.host)
    // It serves this machine only, and senders accept no IPv6 address as host.
    guard ["127.0.0.1", "localhost"].contains(configuration.host) else {
      throw SettingsError("simulator.host", "must be 127.0.0.1 or localhost")
    }
    configuration.apnsPort = try reader.int("simulator.apnsPort", default: 0, in: 0...65535)
    configuration.fcmPort = try reader.int("simulator.fcmPort", default: 0, in: 0...65535)
    configuration.httpsPort = try reader.int("simulator.httpsPort", default: 0, in: 0...65535)
    configuration.adminPort = try reader.int("simulator.adminPort", default: 0, in: 0...65535)
    configuration.recordsPushes = try reader.bool("simulator.recordsPushes", default: true)
    configuration.notificationsPerDevice = try reader.int(
      "simulator.notificationsPerDevice", default: configuration.notificationsPerDevice, in: 1...1_000_000)
    self.configuration = configuration
  }
}
