import Ledger
import PostgreSQL
import RDKafka
import Registry
import Worker

/// An unusable configuration value: its key and the expectation. Never contains the value of a secret.
package struct SettingsError: Error, Hashable, CustomStringConvertible {
  /// The key as the configuration file writes it: `kafka.bootstrapServers`.
  package let key: String
  /// The expectation, as the end of a sentence that begins with the key.
  package let expectation: String

  package init(_ key: String, _ expectation: String) {
    self.key = key
    self.expectation = expectation
  }

  package var description: String { "\(key) \(expectation)" }
}

extension SettingsError {
  /// Translates an error of another target into one that names the key.
  ///
  /// Nil if the settings are not the cause.
  init?(cause: any Error) {
    switch cause {
    case let error as SettingsError: self = error
    case let error as RDKafkaError where error.code == .configuration:
      self.init("kafka.properties", "must be properties that librdkafka and Fanfare accept: \(error.message)")
    case let error as RegistryFileError:
      self.init("registry.path", "must be a registry, or a new file in a writable directory: \(error)")
    case let error as PostgreSQLError where error.code == .configuration || error.code == .programming:
      self.init("registry.postgres.url", "must name a database in which the user may create and use tables: \(error)")
    case let error as LedgerError where error.code == .unusable:
      self.init("ledger.path", "must be a ledger, or a new file in a writable directory: \(error)")
    case let error as LedgerError where error.code == .unusableDatabase:
      self.init("ledger.postgres.url", "must name a database in which the user may create and use tables: \(error)")
    case let error as WorkerConfiguration.Problem:
      self.init("worker.\(error.property)", "must be \(error.expected)")
    default: return nil
    }
  }
}
