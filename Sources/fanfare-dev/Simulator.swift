import ArgumentParser
import FanfareCore
import Logging
import Operations
import PushSimulator
import Roles
import ServiceLifecycle
import SettingsTable

/// `fanfare-dev simulator`
struct SimulatorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulator",
    abstract: "Simulates \(Platform.titles) over real TLS, with faults on demand.",
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
struct SimulatorSettings: Sendable {
  private static let standard = SimulatorConfiguration()

  struct Keys: Sendable {
    @Setting("keys, certificates and endpoints.json; created when missing") var directory = "fanfare-simulator"
    @Setting("127.0.0.1 or localhost") var host = standard.host
    @Setting(in: 0...65535, "0, here and below: the kernel chooses") var apnsPort = 0
    @Setting(in: 0...65535, "of FCM") var fcmPort = 0
    @Setting(in: 0...65535, "of the token endpoints and of WNS") var httpsPort = standard.httpsPort
    @Setting(in: 0...65535, "of the admin routes") var adminPort = standard.adminPort
    @Setting("false: keeps no notifications; for load tests") var recordsPushes = standard.recordsPushes
    @Setting(in: 1...1_000_000, "the newest notifications of each device are kept, up to this number")
    var notificationsPerDevice = standard.notificationsPerDevice
  }

  static let keys = SettingsSection("simulator", Keys())

  let directory: String
  let configuration: SimulatorConfiguration

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    directory = keys.directory
    // It serves this machine only, and senders accept no IPv6 address as host.
    guard ["127.0.0.1", "localhost"].contains(keys.host) else {
      throw SettingsError("simulator.host", "must be 127.0.0.1 or localhost")
    }
    var configuration = Self.standard
    (configuration.host, configuration.recordsPushes) = (keys.host, keys.recordsPushes)
    configuration.ports = [.apns: keys.apnsPort, .fcm: keys.fcmPort]
    (configuration.httpsPort, configuration.adminPort) = (keys.httpsPort, keys.adminPort)
    configuration.notificationsPerDevice = keys.notificationsPerDevice
    self.configuration = configuration
  }
}
