import FanfareCore
import RDKafka
import Synchronization

@testable import Ledger

/// A store with faults that a test switches on: it is unavailable, refuses writes, delays an answer, writes the second
/// batch before the first, or never finishes a removal. Counts positions stored before their writes had ended.
final class FaultyStore: LedgerStore {
  static let unavailable = LedgerError(.unavailable, "the store is unavailable for the test")

  private let store: SQLiteLedger
  private let holdsFirstBatch: Bool
  private let removalNeverEnds: Bool
  private let delayedPositions: Int?
  private let (delay, endOfDelay) = AsyncStream.makeStream(of: Void.self)
  private let state = Mutex(State())
  private let (second, secondIsWritten) = AsyncStream.makeStream(of: Void.self)

  private struct State {
    var isUnavailable = false
    var refusesWrites = false
    var availablePositions: Int?
    var positionsCalls = 0
    var begun = 0
    var open: [Int: LedgerBatch] = [:]
    var prematurePositions = 0
    var isRemovingExpired = false
  }

  /// The call of `positions` with the number `delayedPositions`, counted from 1, returns after `returnPositions()`.
  init(
    _ store: SQLiteLedger, holdsFirstBatch: Bool = false, removalNeverEnds: Bool = false, delayedPositions: Int? = nil
  ) {
    self.store = store
    self.delayedPositions = delayedPositions
    self.removalNeverEnds = removalNeverEnds
    self.holdsFirstBatch = holdsFirstBatch
  }

  /// Whether `positions` and `write` throw.
  var isUnavailable: Bool {
    get { state.withLock(\.isUnavailable) }
    set { state.withLock { ($0.isUnavailable, $0.availablePositions) = (newValue, nil) } }
  }

  /// Whether `write` throws.
  var refusesWrites: Bool {
    get { state.withLock(\.refusesWrites) }
    set { state.withLock { $0.refusesWrites = newValue } }
  }

  /// Lets the delayed call of `positions` return.
  func returnPositions() { endOfDelay.finish() }

  /// The number of calls of `positions` after which the store becomes unavailable; nil for no limit.
  var availablePositions: Int? {
    get { state.withLock(\.availablePositions) }
    set { state.withLock { $0.availablePositions = newValue } }
  }

  var hasBegunWriting: Bool { state.withLock { $0.begun > 0 } }

  /// Whether a call of `removeExpired` has not returned.
  var isRemovingExpired: Bool { state.withLock(\.isRemovingExpired) }

  /// The number of stored positions that lay beyond a pending write.
  var prematurePositions: Int { state.withLock(\.prematurePositions) }

  var maximumDevices: Int { store.maximumDevices }
  var writesAtOnce: Int { holdsFirstBatch ? 2 : 1 }

  func write(_ batch: LedgerBatch) async throws -> Int {
    let number = try state.withLock { state in
      guard !state.isUnavailable, !state.refusesWrites else { throw Self.unavailable }
      state.begun += 1
      state.open[state.begun] = batch
      return state.begun
    }
    // Either of two batches that start together may be the first; it waits only for the other.
    if holdsFirstBatch, number == 1 { for await _ in second { break } }
    let duplicates = try await store.write(batch)
    state.withLock { $0.open[number] = nil }
    if number == 2 { secondIsWritten.yield() }
    return duplicates
  }

  func reach(_ positions: [TopicPartition: Int64]) async throws {
    state.withLock { state in
      for (partition, position) in positions {
        let isOpen = state.open.values.contains { ($0.positions[partition] ?? .max) <= position }
        if isOpen { state.prematurePositions += 1 }
      }
    }
  }

  func positions() async throws -> [TopicPartition: Int64] {
    let call = try state.withLock { state in
      guard !state.isUnavailable else { throw Self.unavailable }
      if let left = state.availablePositions {
        state.availablePositions = left - 1
        if left <= 1 { (state.isUnavailable, state.availablePositions) = (true, nil) }
      }
      state.positionsCalls += 1
      return state.positionsCalls
    }
    if call == delayedPositions { for await _ in delay {} }
    return try await store.positions()
  }

  func removeExpired() async {
    guard removalNeverEnds else { return }
    state.withLock { $0.isRemovingExpired = true }
    let (end, continuation) = AsyncStream.makeStream(of: Void.self)
    for await _ in end {}
    withExtendedLifetime(continuation) { state.withLock { $0.isRemovingExpired = false } }
  }

  func totals(hub: HubName) async throws -> LedgerTotals { try await store.totals(hub: hub) }
  func report(of send: SendID, hub: HubName) async throws -> SendReport? { try await store.report(of: send, hub: hub) }
  func list(_ query: SendQuery) async throws -> SendPage { try await store.list(query) }
  func check() async throws { try await store.check() }
}
