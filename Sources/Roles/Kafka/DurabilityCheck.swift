import Logging
import RDKafka
import ServiceLifecycle
import SettingsTable

/// The reaction of a role to topics that break a promise.
package enum DurabilityPolicy: String, CaseIterable, Sendable {
  /// It does not start.
  case refuse
  /// It logs a warning for each finding.
  case warn
  /// The topics are not looked at.
  case off
}

/// Checks the topics once, when a role starts.
///
/// With ``DurabilityPolicy/refuse`` the role ends with status 78 if acknowledged sends could be lost. What the cluster
/// does not tell is a warning. A cluster that does not answer now is asked until it does.
struct DurabilityCheck: Service {
  private static let pause = Duration.seconds(5)

  private let check: TopicCheck
  private let policy: DurabilityPolicy
  private let patience: Duration
  private let logger: Logger

  /// Checks the topics, or returns the service that will, if the cluster does not answer in time; nil if all is said.
  ///
  /// `topics` are those that the role uses; it may not have the permission to see others. The cluster has `limit` for
  /// its answer. Missing topics are waited for as long as `patience` says: without them the role ends with status 78,
  /// after which systemd does not restart it (`RestartPreventExitStatus` in its units). Throws `SettingsError` with
  /// what is wrong, and `RDKafkaError` for an unusable configuration.
  static func start(
    _ kafka: KafkaSettings, role: String, topics: [String], within limit: Duration = .seconds(2),
    patience: Duration = .seconds(5), logger: Logger
  ) async throws -> DurabilityCheck? {
    guard kafka.durabilityCheck != .off else { return nil }
    let check = DurabilityCheck(
      check: try TopicCheck(kafka: kafka, client: try kafka.client(role), topics: topics, logger: logger),
      policy: kafka.durabilityCheck, patience: patience, logger: logger)
    do {
      try await check.perform(timeout: limit)
      return nil
    } catch let error as RDKafkaError where error.code != .configuration {
      logger.notice("Topics cannot be checked yet", metadata: [LogKeys.error: "\(error)"])
      return check
    }
  }

  private init(check: TopicCheck, policy: DurabilityPolicy, patience: Duration, logger: Logger) {
    (self.check, self.policy, self.patience, self.logger) = (check, policy, patience, logger)
  }

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      while true {
        do {
          try await perform(timeout: .seconds(15))
          break
        } catch is RDKafkaError {
          // Other components report that Kafka is unavailable.
          do { try await Task.sleep(for: Self.pause) } catch { return }
        }
      }
    }
    try await gracefulShutdown()
  }

  private func perform(timeout: Duration) async throws {
    let report = try await check.report(timeout: timeout, patience: patience)
    for problem in report.unreadable {
      logger.warning("Topics cannot be checked", metadata: [LogKeys.error: "\(problem)"])
    }
    for finding in report.findings {
      logger.warning(
        "A topic can lose acknowledged sends",
        metadata: [LogKeys.topic: "\(finding.topic)", LogKeys.error: "\(finding)"])
    }
    guard policy == .refuse, !report.findings.isEmpty else { return }
    throw SettingsError(
      "kafka.durabilityCheck",
      "refuses topics that can lose acknowledged sends (`fanfare topics create --repair` mends settings): "
        + report.findings.map(\.description).joined(separator: "; "))
  }
}
