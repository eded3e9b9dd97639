import FanfareCore
import Testing

@testable import Ledger

/// Processes that use the store of a ledger beside it.
@Suite(.everyStore, .timeLimit(.minutes(2))) struct ReaderTests {
  private let directory: TemporaryDirectory
  private let reader: any QueriedLedger & SendHistory & AcknowledgementStore

  init() throws {
    directory = try TemporaryDirectory()
    reader = try TestStore.reader(directory)
  }

  @Test func readerIsNotThereUntilALedgerBegins() async throws {
    let id = SendID.timeOrdered(at: .start)
    for error in [
      await #expect(throws: LedgerError.self) { try await reader.check() },
      await #expect(throws: LedgerError.self) { try await reader.report(of: id, hub: .default) },
    ] {
      #expect(error?.code == .notThere)
    }
    let store = try TestStore.make(directory)
    #expect(try await store.positions().isEmpty)
    try await reader.check()
    #expect(try await reader.report(of: id, hub: .default) == nil)
    try await store.write([.send(Samples.send(id)), .status(Samples.status(id, devices: [Samples.device()]))])
    #expect(try await reader.report(of: id, hub: .default) == (try await store.report(of: id, hub: .default)))
    #expect(try await reader.totals(hub: .default).settled == 1)
  }

  private static func note(_ offset: Int64, _ reason: String) -> Acknowledgement {
    Acknowledgement(
      topic: "fanfare.status", partition: 3, offset: offset, reason: reason, at: UnixTime(milliseconds: 1000 + offset))
  }

  @Test func notesAreKeptBesideALedger() async throws {
    let error = await #expect(throws: LedgerError.self) { try await reader.acknowledgements() }
    #expect(error?.code == .notThere)
    try await reader.acknowledge(Self.note(1, "one"))
    // A ledger that runs does not prevent a note.
    let ledger = try TestStore.make(directory)
    try await ledger.check()
    try await reader.acknowledge(Self.note(2, "two"))
    try await reader.acknowledge(Self.note(1, "better"))
    #expect(Set(try await reader.acknowledgements()) == [Self.note(1, "better"), Self.note(2, "two")])
  }
}
