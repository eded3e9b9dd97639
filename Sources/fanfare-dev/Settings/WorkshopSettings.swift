import EmbeddedKafka
import FanfareCore
import RDKafka
import Roles

/// The keys that only `fanfare-dev` reads; `deploy/fanfare-dev.yaml` lists them with their defaults.
///
/// - `kafka.embedded` (true or false, default false): the cluster is `fanfare-dev broker`. The clients use short
///   timeouts, and the front end refuses sends before the cluster drops records that are not consumed yet.
/// - `operations.clockOffsetFile` (text): a file with the number of milliseconds by which the process's clock differs
///   from the machine's.
struct WorkshopSettings: Sendable {
  let isEmbedded: Bool
  let clockOffsetFile: String?
  let simulator: SimulatorSettings
  let broker: BrokerSettings

  init(from reader: SettingsReader) throws(SettingsError) {
    isEmbedded = try reader.bool("kafka.embedded", default: false)
    clockOffsetFile = try reader.optionalString("operations.clockOffsetFile")
    simulator = try SimulatorSettings(from: reader)
    broker = try BrokerSettings(from: reader)
  }

  /// Tells how much waits on the sends topic of an embedded cluster, which drops what it has no room for; nil on any
  /// other cluster.
  func backlogMonitor(_ runtime: Runtime) throws -> BacklogMonitor? {
    guard isEmbedded else { return nil }
    return try BacklogMonitor(
      client: try runtime.settings.kafka.client("api"), topic: runtime.settings.kafka.topics.sends,
      groupID: runtime.settings.workerGroup, logger: runtime.logger)
  }
}

extension Settings {
  /// The settings of the product, with those of the workshop applied to them.
  static func withWorkshop(
    _ load: ((SettingsReader) throws(SettingsError) -> Void) async throws -> Settings
  ) async throws -> (Settings, WorkshopSettings) {
    var workshop: WorkshopSettings?
    var settings = try await load { (reader) throws(SettingsError) in workshop = try WorkshopSettings(from: reader) }
    guard let workshop else { preconditionFailure("the settings were loaded without the workshop's keys") }
    if workshop.isEmbedded { settings.kafka.profile = .embedded }
    return (settings, workshop)
  }
}

extension CommonOptions {
  /// The process that the settings describe, with logging and metrics set up.
  func workshop(_ role: String) async throws -> (Runtime, WorkshopSettings) {
    let (settings, workshop) = try await Settings.withWorkshop { try await self.settings(readFurther: $0) }
    let clock: any WallClock = workshop.clockOffsetFile.map { SteppedWallClock(file: $0) } ?? SystemWallClock()
    return (try Runtime(role: role, settings: settings, clock: clock), workshop)
  }
}
