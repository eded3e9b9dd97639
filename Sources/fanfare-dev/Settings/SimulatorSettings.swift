import PushSimulator
import Roles

/// Where the simulator listens, and where its keys are.
///
/// - `simulator.directory` (text, default `fanfare-simulator`): keys, certificates and `endpoints.json`; made when
///   missing, used again when there.
/// - `simulator.host` (`127.0.0.1` or `localhost`, default `127.0.0.1`)
/// - `simulator.apnsPort`, `simulator.fcmPort`, `simulator.httpsPort`, `simulator.adminPort` (0…65535, default 0): 0
///   lets the kernel choose.
/// - `simulator.recordsPushes` (true or false, default true): whether what arrives is kept for reading; false for a
///   sink under load.
/// - `simulator.notificationsPerDevice` (1…1,000,000, default 50): how many of them, of each device the newest; the
///   counts are of all.
struct SimulatorSettings: Sendable {
  let directory: String
  let configuration: SimulatorConfiguration

  init(from reader: SettingsReader) throws(SettingsError) {
    directory = try reader.string("simulator.directory", default: "fanfare-simulator")
    var configuration = SimulatorConfiguration()
    configuration.host = try reader.string("simulator.host", default: configuration.host)
    // It serves this machine only, and the senders take no IPv6 address for a host.
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
