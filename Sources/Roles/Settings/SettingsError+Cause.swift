import Ledger
import PostgreSQL
import RDKafka
import Registry
import Worker

extension SettingsError {
  /// What another target says about a value that it was given, by the key of that value; nil where the settings are not
  /// to blame.
  init?(cause: any Error) {
    switch cause {
    case let error as SettingsError: self = error
    case let error as RDKafkaError where error.code == .configuration:
      self.init("kafka.properties", "must be properties that this librdkafka and this program take: \(error.message)")
    case let error as RegistryFileError:
      self.init("registry.path", "must be a registry, or a new file in a directory that can be written: \(error)")
    case let error as PostgreSQLError where error.code == .configuration || error.code == .programming:
      self.init("registry.postgres.url", "must lead to a database of which the user may make and use tables: \(error)")
    case let error as LedgerError where error.code == .unusable:
      self.init("ledger.path", "must be a ledger, or a new file in a directory that can be written: \(error)")
    case let error as LedgerError where error.code == .unusableDatabase:
      self.init("ledger.postgres.url", "must lead to a database of which the user may make and use tables: \(error)")
    case let error as WorkerConfiguration.Problem:
      self.init("worker.\(error.property)", "must be \(error.expected)")
    default: return nil
    }
  }
}
