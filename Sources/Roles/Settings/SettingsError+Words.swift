import Ledger
import RDKafka
import Registry
package import SettingsTable
import Store

extension SettingsMistake {
  /// The mistake as a line of text, with its place and value: `fanfare.yaml:3: kafka.partitions must be …, not "many"`.
  package var line: String {
    let place =
      switch place {
      case .file(let path, let line?): "\(path):\(line): "
      case .file(let path, nil): "\(path): "
      case .variable(let name): "\(name): "
      case nil: ""
      }
    return Printable.line(place + description + (value.map { ", not \"\($0)\"" } ?? ""))
  }
}

extension SettingsError {
  /// Translates an error of another target into one that names the key.
  ///
  /// Nil if the settings are not the cause.
  init?(cause: any Error) {
    switch cause {
    case let error as SettingsError: self = error
    case let error as RDKafkaError where error.code == .configuration:
      self.init("kafka.properties", "must be properties that librdkafka and Fanfare accept: \(error.words)")
    case let error as RegistryFileError:
      self.init("registry.path", "must be a registry, or a new file in a writable directory: \(error)")
    case let error as PostgreSQLError where error.code == .configuration || error.code == .programming:
      self.init("registry.postgres.url", "must name a database in which the user may create and use tables: \(error)")
    case let error as LedgerError where error.code == .unusable:
      self.init("ledger.path", "must be a ledger, or a new file in a writable directory: \(error)")
    case let error as LedgerError where error.code == .unusableDatabase:
      self.init("ledger.postgres.url", "must name a database in which the user may create and use tables: \(error)")
    default: return nil
    }
  }
}
