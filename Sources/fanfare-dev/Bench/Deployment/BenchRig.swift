import FanfareCore
import FoundationEssentials
import Logging
import NIOCore
import NIOPosix
import PushSimulator
import RDKafka
import Roles

/// What a scenario works with: a directory of its own, keys, this program, a log.
final class BenchRig: Sendable {
  let options: BenchOptions
  let directory: URL
  let credentials: SimulatorCredentials
  let logger: Logger
  let eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
  /// What a push of the product looks like on the wire, for those that send the same without being the product.
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

  /// Makes a scenario's rig for as long as `body` runs, and leaves nothing behind.
  static func with<Value>(_ options: BenchOptions, _ body: (BenchRig) async throws -> Value) async throws -> Value {
    let directory = FileManager.default.temporaryDirectory.appending(
      path: "fanfare-bench-\(ProcessInfo.processInfo.processIdentifier)-\(UUID())")
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer {
      do { try FileManager.default.removeItem(at: directory) } catch {
        Console.error("Left behind: \(directory.path): \(error)")
      }
    }
    return try await body(try await BenchRig(options: options, directory: directory))
  }

  /// The path of a file of the rig.
  func path(_ name: String) -> String { directory.appending(path: name).path }

  /// The path of one of the credentials' files.
  func key(_ name: String) -> String { path("keys/\(name)") }

  /// Starts a broker or a simulator in a process of its own, with these settings (YAML).
  func start(_ command: String, settings: String) throws -> ChildProcess {
    try ChildProcess([command, "--config", try file(of: settings)], name: command, directory: directory)
  }

  /// Starts a role of the product in a process of its own, with these settings (YAML).
  func startRole(_ role: String, isEmbedded: Bool, settings: String) throws -> ChildProcess {
    try .role([role, "--config", try file(of: settings)], inWorkshop: isEmbedded, directory: directory)
  }

  private func file(of settings: String) throws -> String {
    let file = path("settings-\(UUID()).yaml")
    try Data(settings.utf8).write(to: URL(fileURLWithPath: file))
    return file
  }

  /// The settings of a hub whose iPhones are reached at the sink.
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
