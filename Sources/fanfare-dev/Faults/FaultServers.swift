import FanfareCore
import Ledger

/// The servers that fault rows use instead of an embedded cluster and files.
struct FaultServers: Sendable {
  /// The cluster: `host:port`.
  var kafka: String?
  /// The database: libpq's connection string.
  var postgres: String?

  /// The reason why the row is impossible on these servers; nil if it is possible.
  func refusal(of scenario: FaultScenario) -> String? {
    if kafka != nil, scenario.needs.contains(.brokerFaults) {
      return "only the embedded cluster's brokers can be told to fail"
    }
    if postgres != nil, !scenario.needs.isDisjoint(with: [.registryFile, .smallDisk]) {
      return "it needs SQLite files"
    }
    if scenario.needs.contains(.smallDisk), !SmallDisk.isPermitted { return "only root can make a small file system" }
    return nil
  }
}

/// The ledger's account as a fault row reads it.
protocol FaultHistory: SendHistory {
  func totals(hub: HubName) async throws -> LedgerTotals
}

extension SQLiteLedgerReader: FaultHistory {}
extension PostgreSQLLedger: FaultHistory {}
