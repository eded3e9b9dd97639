import FanfareCore
import FoundationEssentials
import Logging
import NIOCore
import NIOPosix
import PushSimulator
import RDKafka
import Roles

/// The tools of a scenario: a directory of its own, keys, child processes and a logger.
final class BenchRig: Sendable {
  let options: BenchOptions
  let directory: URL
  let credentials: SimulatorCredentials
  let logger: Logger
  let eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
  /// A push of the product as it is on the wire, for load generators that send the same.
  let specimen: PushSpecimen

  private init(options: BenchOptions, directory: URL) async throws {
    self.options = options
    self.directory = directory
    var logger = Logger(label: "fanfare.bench")
    logger.logLevel = .warning
    self.logger = logger
    credentials = try .generate()
    try credentials.write(to: directory.appending(path: "keys").path)
    specimen = try await PushSpecimen.capture(credentials: credentials, eventLoopGroup: eventLoopGroup, logger: logger)
  }

  /// Creates a scenario's rig, runs `body` with it, and removes its directory.
  static func with<Value>(_ options: BenchOptions, _ body: (BenchRig) async throws -> Value) async throws -> Value {
    let directory = try RunDirectory.create("fanfare-bench-\(ProcessInfo.processInfo.processIdentifier)")
    defer { RunDirectory.remove(directory) }
    return try await body(try await BenchRig(options: options, directory: directory))
  }

  /// The path of a file in the rig's directory.
  func path(_ name: String) -> String { directory.appending(path: name).path }

  /// The path of a file of the credentials.
  func key(_ name: String) -> String { path("keys/\(name)") }

  /// Starts a broker or a simulator in a separate process with these settings (YAML).
  func start(_ command: String, settings: String) throws -> ChildProcess {
    try ChildProcess([command, "--config", try file(of: settings)], name: command, directory: directory)
  }

  /// Starts a role of the product in a separate process with these settings (YAML).
  func startRole(_ role: String, isEmbedded: Bool, settings: String) throws -> ChildProcess {
    try .role([role, "--config", try file(of: settings)], inWorkshop: isEmbedded, directory: directory)
  }

  private func file(of settings: String) throws -> String {
    let file = path("settings-\(UUID()).yaml")
    try Data(settings.utf8).write(to: URL(fileURLWithPath: file))
    return file
  }

  /// The keys of a hub's section `quota` that switch all quotas off.
  static let noQuotas =
    "sendsPerSecond: 0, devicesPerDay: 0, openBroadcasts: 0, registrationsPerDay: 0, storedBytesPerDay: 0, "
    + "scheduledSends: 0, scheduledBytes: 0, readsPerSecond: 0"

  /// The settings of a hub that uses the sink as APNs.
  func apnsSettings(_ sink: Sink, connections: Int) -> String {
    """
    hub:
      default:
        authentication: {method: demo}
        apns:
          keyFile: \(key(SimulatorCredentials.FileName.apnsKey))
          keyID: "\(credentials.apns.keyID)"
          teamID: "\(credentials.apns.teamID)"
          topic: \(credentials.apns.bundleIDs[0])
          host: \(sink.host)
          port: \(sink.port)
          maximumConnections: \(connections)
    \(sink.trustRoots.map { "      trustRootsFile: \($0)\n" } ?? "")
    """
  }
}
