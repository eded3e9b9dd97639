package import FanfareCore
package import Store

/// The queries that every ledger answers in the same way.
package protocol QueriedLedger: Sendable {
  /// Runs `body` on a store that may be read. Throws `LedgerError`.
  func read<Value: Sendable>(_ body: @escaping @Sendable (Session) throws -> Value) async throws -> Value
}

extension QueriedLedger {
  package func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    try await read { try LedgerQueries($0).report(of: send, hub: hub) }
  }

  package func list(_ query: SendQuery) async throws -> SendPage {
    try await read { try SendPageReader($0, query).page() }
  }

  /// The totals of a hub since the store was created; zero for an unknown hub. Throws `LedgerError`.
  package func totals(hub: HubName) async throws -> LedgerTotals {
    try await read { try LedgerQueries($0).totals(hub: hub) }
  }

  /// All of them; see `AcknowledgementStore`.
  package func acknowledgements() async throws -> [Acknowledgement] {
    try await read { try LedgerQueries($0).acknowledgements() }
  }

  /// Throws `LedgerError` when there is no ledger yet or it cannot be read.
  package func check() async throws { try await read { try LedgerQueries($0).check() } }
}
