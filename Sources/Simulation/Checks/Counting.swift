import FanfareCore
import Ledger
import RDKafka

/// The ledger's accounting, fed with the records of the log and compared with the true history: each send counts once.
///
/// `@unchecked Sendable`: see `World`.
final class Counting: @unchecked Sendable {
  private let topics: Topics
  private let accounts: Accounts
  private let hubs: Set<HubName>
  private var ledger: MemoryLedger
  private(set) var checks = 0

  init(_ topics: Topics, hubs: Set<HubName>, _ accounts: Accounts) {
    (self.topics, self.hubs, self.accounts) = (topics, hubs, accounts)
    ledger = MemoryLedger(topics: topics)
  }

  /// A record is in the log, and the accounts know of it.
  func appended(_ partition: TopicPartition, _ offset: Int64, _ record: SimulatedCluster.Stored) {
    guard partition.topic == topics.sends || partition.topic == topics.status else { return }
    let consumed = ConsumedRecord(
      topic: partition.topic, partition: partition.partition, offset: offset, timestamp: record.timestamp,
      key: record.key.map { $0[...] }, value: record.value[...])
    do { try ledger.write([consumed]) } catch { return accounts.violate("the ledger fails: \(error)") }
    checks += 1
    let (counted, ended) = (sum(\.settled), accounts.counts.ended)
    if counted != ended { accounts.violate("the ledger counts \(counted) settled sends of \(ended)") }
  }

  /// At the end, when nothing is in flight any more.
  func finish(mayDiffer: Bool) {
    checks += 1
    let (known, unannounced, counts) = (sum(\.accepted), sum(\.unannounced), accounts.counts)
    if known != counts.inLog { accounts.violate("the ledger counts \(known) sends of \(counts.inLog)") }
    if unannounced != 0 { accounts.violate("the ledger has \(unannounced) sends that were never posted") }
    let delivered = sum { $0.devices.values.reduce(0) { $0 + ($1[.delivered] ?? 0) } }
    let arrived = accounts.devicesReached
    // A push may arrive without its answer, and only the first complete dispatch of a send counts.
    if delivered > arrived || (!mayDiffer && delivered < arrived) {
      accounts.violate("the ledger counts \(delivered) pushes as delivered, and \(arrived) have arrived")
    }
  }

  private func sum(_ count: (LedgerTotals) -> Int) -> Int {
    hubs.reduce(0) { $0 + count(ledger.totals(hub: $1)) }
  }
}
