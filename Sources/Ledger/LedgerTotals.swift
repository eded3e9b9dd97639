package import FanfareCore

/// What the ledger knows of one hub, all sends together, since its file was made. Retention takes nothing away from it.
package struct LedgerTotals: Hashable, Sendable {
  /// Sends known, from whichever topic.
  package var accepted = 0
  /// Sends of which every work item has ended, the ones below included.
  package var settled = 0
  /// Of those: nobody was registered.
  package var noTarget = 0
  /// Of those: the time to live had passed before anything was sent.
  package var expired = 0
  /// Of those: could not be processed.
  package var deadLettered = 0
  /// Of those: cancelled before every device had it.
  package var cancelled = 0
  /// Sends known by their end only: their own record has not been read. Nothing, once the ledger has caught up with
  /// both topics.
  package var unannounced = 0
  /// Records that came for nothing, because the work item had another before, or another attempt at the send was
  /// complete first: repeated dispatches after a crash. Each counts once; a record that is merely read again does not.
  package var duplicates = 0
  /// How many devices ended how.
  package var devices: [Platform: [DeviceResult.Outcome: Int]] = [:]

  package init() {}

  /// Sends known and not settled: at any moment, `accepted == settled + inFlight`. A send that never ends stays in this
  /// number.
  package var inFlight: Int { accepted - settled }
}
