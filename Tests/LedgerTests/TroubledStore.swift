import FanfareCore
import RDKafka
import Synchronization

@testable import Ledger

/// A store that is away or takes no batches when a test wants it, answers late, writes the second batch before the
/// first, or never ends to remove what is old; and that sees whether more is said to be there than is.
final class TroubledStore: LedgerStorage {
  static let away = LedgerError(.unavailable, "the store is away")

  private let store: LedgerStore
  private let holdsFirstBatch: Bool
  private let retiresForEver: Bool
  private let lateAnswer: Int?
  private let (late, isLateEnough) = AsyncStream.makeStream(of: Void.self)
  private let state = Mutex(State())
  private let (second, secondIsWritten) = AsyncStream.makeStream(of: Void.self)

  private struct State {
    var isAway = false
    var isFull = false
    var positionsLeft: Int?
    var questions = 0
    var begun = 0
    var open: [Int: LedgerBatch] = [:]
    var mistakes = 0
    var isRetiring = false
  }

  /// `lateAnswer`: which question for the positions is answered only after `answer()`.
  init(_ store: LedgerStore, holdsFirstBatch: Bool = false, retiresForEver: Bool = false, lateAnswer: Int? = nil) {
    self.store = store
    self.lateAnswer = lateAnswer
    self.retiresForEver = retiresForEver
    self.holdsFirstBatch = holdsFirstBatch
  }

  /// Whether it answers nobody.
  var isAway: Bool {
    get { state.withLock(\.isAway) }
    set { state.withLock { ($0.isAway, $0.positionsLeft) = (newValue, nil) } }
  }

  /// Whether it takes no batches.
  var isFull: Bool {
    get { state.withLock(\.isFull) }
    set { state.withLock { $0.isFull = newValue } }
  }

  /// Answers the question that has waited.
  func answer() { isLateEnough.finish() }

  /// After how many questions for the positions it goes away.
  var goesAwayAfterPositions: Int? {
    get { state.withLock(\.positionsLeft) }
    set { state.withLock { $0.positionsLeft = newValue } }
  }

  /// Whether a batch has been given to it.
  var hasBegun: Bool { state.withLock { $0.begun > 0 } }

  /// Whether it is removing what is old.
  var isRetiring: Bool { state.withLock(\.isRetiring) }

  /// How often a position went beyond what was still being written.
  var mistakes: Int { state.withLock(\.mistakes) }

  var maximumDevices: Int { store.maximumDevices }
  var writesAtOnce: Int { holdsFirstBatch ? 2 : 1 }

  func write(_ batch: LedgerBatch) async throws -> Int {
    let number = try state.withLock { state in
      guard !state.isAway, !state.isFull else { throw Self.away }
      state.begun += 1
      state.open[state.begun] = batch
      return state.begun
    }
    // Which of two that begin at once is the first is not known, but that each waits for nothing but the other.
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
        if isOpen { state.mistakes += 1 }
      }
    }
  }

  func positions() async throws -> [TopicPartition: Int64] {
    let question = try state.withLock { state in
      guard !state.isAway else { throw Self.away }
      if let left = state.positionsLeft {
        state.positionsLeft = left - 1
        if left <= 1 { (state.isAway, state.positionsLeft) = (true, nil) }
      }
      state.questions += 1
      return state.questions
    }
    if question == lateAnswer { for await _ in late {} }
    return try await store.positions()
  }

  func removeExpired() async {
    guard retiresForEver else { return }
    state.withLock { $0.isRetiring = true }
    let (end, continuation) = AsyncStream.makeStream(of: Void.self)
    for await _ in end {}
    withExtendedLifetime(continuation) { state.withLock { $0.isRetiring = false } }
  }

  func totals(hub: HubName) async throws -> LedgerTotals { try await store.totals(hub: hub) }
  func report(of send: SendID, hub: HubName) async throws -> SendReport? { try await store.report(of: send, hub: hub) }
  func list(_ query: SendQuery) async throws -> SendPage { try await store.list(query) }
  func check() async throws { try await store.check() }
}
