import Ledger

/// The ledger's file, and what it keeps.
///
/// - `ledger.path` (text, default `fanfare-ledger.sqlite`): written by `fanfare ledger`, read by `fanfare api`.
/// - `ledger.retentionDays` (1…3650, default 30): how long a settled send can be looked up.
/// - `ledger.devicesKept` (0…100000, default 100): a send to more devices keeps its counts only.
struct LedgerSettings: Sendable {
  let store: LedgerStoreConfiguration

  init(from reader: SettingsReader) throws(SettingsError) {
    var store = LedgerStoreConfiguration(path: try reader.string("ledger.path", default: "fanfare-ledger.sqlite"))
    store.retention = .seconds(86_400 * (try reader.int("ledger.retentionDays", default: 30, in: 1...3650)))
    store.maximumDevices = try reader.int("ledger.devicesKept", default: store.maximumDevices, in: 0...100_000)
    self.store = store
  }
}
