import FoundationEssentials
import Logging
import ServiceLifecycle
import SettingsTable
import Synchronization

extension KafkaSettings {
  /// The watches over the files of Kafka's security.
  ///
  /// A new password reaches the running clients. librdkafka reads the files of TLS when a client is created, so new
  /// ones need a restart, which the log announces.
  func credentialWatches(logger: Logger) -> [any Service] {
    guard let security else { return [] }
    var watches: [any Service] = []
    if let password = security.password {
      watches.append(
        CredentialWatch(
          metadata: [LogKeys.key: "\(password.file.key)"], files: [password.file.path], logger: logger,
          use: security.renewPassword))
    }
    if !security.tlsFiles.isEmpty {
      let files = security.tlsFiles
      let isFirst = Atomic(true)
      watches.append(
        CredentialWatch(metadata: [LogKeys.key: "kafka.security"], files: files, logger: logger) {
          guard !isFirst.exchange(false, ordering: .relaxed) else { return false }
          logger.warning(
            "Kafka's TLS files have changed: restart this role to use them",
            metadata: [LogKeys.file: "\(files.joined(separator: ", "))"])
          return false
        })
    }
    return watches
  }
}
