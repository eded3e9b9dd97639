import ArgumentParser
import EmbeddedKafka
import FanfareCore
import FoundationEssentials
import RDKafka
import Roles
import SettingsTable
import Synchronization

/// `fanfare-dev role`: a role of the product, with settings for an embedded cluster and a stepped clock.
struct RoleCommand: AsyncParsableCommand {
  /// The roles of the product.
  enum Role: String, CaseIterable, ExpressibleByArgument {
    case api, worker, ledger, hooks
  }

  static let configuration = CommandConfiguration(
    commandName: "role", abstract: "Runs a role of the product with the settings that only tests need.",
    shouldDisplay: false)

  @Argument var role: Role
  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.runWorkshop(role.rawValue) { runtime, workshop in
      try await AwaitedFile(of: runtime.settings.kafka)?.appear(logger: runtime.logger)
      if role == .worker {
        for hub in runtime.settings.hubs { try await AwaitedFile(of: hub)?.appear(logger: runtime.logger) }
      }
      var services =
        switch role {
        case .api: try await APIRole.services(runtime, backlog: try workshop.backlogMonitor(runtime))
        case .worker: try await WorkerRole.services(runtime)
        case .ledger: try await LedgerRole.services(runtime)
        case .hooks: try await HooksRole.services(runtime)
        }
      if let clock = runtime.clock as? SteppedWallClock {
        services.services.insert(UntilShutdown("clock") { await clock.run() }, at: 0)
      }
      return services
    }
  }
}

/// The keys that only `fanfare-dev` reads.
struct WorkshopSettings: Sendable {
  private struct KafkaKeys: Sendable {
    @Setting(
      "for tests: whether the cluster is `fanfare-dev broker`; clients use short timeouts, and the front end refuses "
        + "sends before the cluster drops records that are not consumed yet")
    var embedded = false
  }

  private struct OperationsKeys: Sendable {
    @Setting(
      example: "clock", "for tests: a file with the offset of this process's clock in milliseconds, read continuously")
    var clockOffsetFile: String?
  }

  private static let kafka = SettingsSection("kafka", KafkaKeys())
  private static let operations = SettingsSection("operations", OperationsKeys())
  static let declarations = [
    kafka.declaration, operations.declaration, SimulatorSettings.keys.declaration, BrokerSettings.keys.declaration,
  ]

  let isEmbedded: Bool
  let clockOffsetFile: String?
  let simulator: SimulatorSettings
  let broker: BrokerSettings

  init(from reader: SettingsReader) throws(SettingsError) {
    isEmbedded = try reader.read(Self.kafka).embedded
    clockOffsetFile = try reader.read(Self.operations).clockOffsetFile
    simulator = try SimulatorSettings(from: reader)
    broker = try reader.read(BrokerSettings.keys)
  }

  /// Measures the lag of the sends topic of an embedded cluster; nil on any other cluster.
  ///
  /// An embedded cluster drops records when it is full.
  func backlogMonitor(_ runtime: Runtime) throws -> BacklogMonitor? {
    guard isEmbedded else { return nil }
    return try BacklogMonitor(
      client: try runtime.settings.kafka.client("api"), topic: runtime.settings.kafka.topics.sends,
      groupID: runtime.settings.workerGroup, logger: runtime.logger)
  }
}

extension BacklogMonitor: BacklogGauge {}

extension Settings {
  /// Loads the product's settings and applies the workshop's to them.
  static func withWorkshop(
    _ load: ((SettingsReader) throws(SettingsError) -> Void) throws -> Settings
  ) throws -> (Settings, WorkshopSettings) {
    var workshop: WorkshopSettings?
    var settings = try load { (reader) throws(SettingsError) in workshop = try WorkshopSettings(from: reader) }
    guard let workshop else { preconditionFailure("the settings were loaded without the workshop's keys") }
    if workshop.isEmbedded {
      settings.kafka.profile = .embedded
      // The cluster keeps its records in memory and has no settings.
      settings.kafka.durabilityCheck = .off
    }
    return (settings, workshop)
  }
}

extension CommonOptions {
  /// Loads the settings with the workshop's keys, and sets up logging and metrics.
  func workshop(_ role: String) throws -> (Runtime, WorkshopSettings) {
    let (settings, workshop) = try Settings.withWorkshop { try self.settings(readFurther: $0) }
    let clock: any WallClock = workshop.clockOffsetFile.map { SteppedWallClock(file: $0) } ?? SystemWallClock()
    return (try Runtime(role: role, settings: settings, clock: clock), workshop)
  }

  /// Loads the settings and runs the role that `start` creates, as `run` does.
  func runWorkshop(_ role: String, _ start: (Runtime, WorkshopSettings) async throws -> RoleServices) async throws {
    let signals = await RoleRun.signals()
    let (runtime, workshop) = try workshop(role)
    try await runtime.run(signals) { try await start(runtime, workshop) }
  }
}

/// The machine's clock plus an offset in milliseconds from a file.
///
/// Tests step one process's clock with it.
final class SteppedWallClock: WallClock {
  private static let interval = Duration.milliseconds(50)
  private let file: String
  private let offset = Atomic<Int64>(0)

  /// The offset is 0 until `run()` has read the file.
  init(file: String) {
    self.file = file
  }

  func now() -> UnixTime { SystemWallClock().now() + .milliseconds(offset.load(ordering: .relaxed)) }

  /// Reads the file 20 times a second until cancelled. Without a number in the file the offset stays.
  func run() async {
    while true {
      // The file may be missing or incomplete.
      if let text = try? String(contentsOfFile: file, encoding: .utf8),
        let offset = Int64(text.trimmingSuffix { $0.isNewline })
      {
        self.offset.store(offset, ordering: .relaxed)
      }
      do { try await Task.sleep(for: Self.interval) } catch { return }
    }
  }
}
