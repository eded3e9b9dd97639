import FoundationEssentials
import Logging
import PushSimulator

/// A file that another process writes once it listens. Who is started beside that process waits for it.
struct AwaitedFile: Sendable {
  /// The key that leads to it.
  let key: String
  let path: String

  private static let interval = Duration.milliseconds(100)

  /// Suspends until something stands in the file, but no longer than `patience`; says once that it waits, and for what. Who reads
  /// the file next says what is wrong if there still is none. Throws when cancelled.
  func appear(within patience: Duration = .seconds(30), logger: Logger) async throws {
    guard !isThere else { return }
    logger.notice("Waiting for a file that another process writes", metadata: [LogKeys.key: "\(key)", LogKeys.file: "\(path)"])
    let deadline = ContinuousClock.now + patience
    while !isThere, ContinuousClock.now < deadline { try await Task.sleep(for: Self.interval) }
  }

  private var isThere: Bool {
    // What cannot be read may be about to be made; and what is empty, about to be written.
    (try? Data(contentsOf: URL(fileURLWithPath: path)))?.isEmpty == false
  }
}

extension KafkaSettings {
  /// Where a broker that is starting will say where it listens; nil where that is said already.
  var awaitedFile: AwaitedFile? {
    bootstrapServersFile.map { AwaitedFile(key: "kafka.bootstrapServersFile", path: $0) }
  }
}

extension HubSettings {
  /// Where a simulator that is starting will say where it listens; nil where the hub does not push to one.
  var awaitedFile: AwaitedFile? {
    simulator.map { AwaitedFile(key: "hub.\(name).simulator", path: "\($0)/\(SimulatorCredentials.FileName.endpoints)") }
  }
}
