import Metrics
import RDKafka
import Synchronization

/// What the ledger measures; the handles are made once.
struct LedgerMetrics: Sendable {
  let records: [String: Counter]
  let undecodable: [String: Counter]
  let duplicates = Counter(label: "fanfare_ledger_duplicates_total")
  let batchSeconds = Timer(label: "fanfare_ledger_batch_seconds")
  let storeFailures = Counter(label: "fanfare_ledger_store_failures_total")

  init(topics: [String]) {
    func counters(_ label: String) -> [String: Counter] {
      Dictionary(uniqueKeysWithValues: topics.map { ($0, Counter(label: label, dimensions: [("topic", $0)])) })
    }
    records = counters("fanfare_ledger_records_total")
    undecodable = counters("fanfare_ledger_undecodable_total")
  }
}
