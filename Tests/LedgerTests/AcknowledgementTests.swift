import FanfareCore
import Foundation
import Store
import Support
import Testing

@testable import Ledger

@Suite struct AcknowledgementTests {
  private static func note(_ offset: Int64, _ reason: String) -> Acknowledgement {
    Acknowledgement(
      topic: "fanfare.status", partition: 3, offset: offset, reason: reason, at: UnixTime(milliseconds: 1000 + offset))
  }

  /// The same steps on every store.
  private func keepsNotes(_ store: some AcknowledgementStore) async throws {
    let error = await #expect(throws: LedgerError.self) { try await store.acknowledgements() }
    #expect(error?.code == .notThere)
    try await store.acknowledge(Self.note(1, "one"))
    try await store.acknowledge(Self.note(2, "two"))
    try await store.acknowledge(Self.note(1, "better"))
    let notes = try await store.acknowledgements()
    #expect(Set(notes) == [Self.note(1, "better"), Self.note(2, "two")])
  }

  @Test func fileKeepsNotesBesideALedger() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-notes-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let configuration = LedgerStoreConfiguration(path: directory.appending(path: "ledger.sqlite").path)
    try await keepsNotes(SQLiteAcknowledgements(configuration))
    // A ledger that runs does not prevent a note.
    let ledger = try LedgerStore(configuration)
    try await SQLiteAcknowledgements(configuration).acknowledge(Self.note(3, "three"))
    #expect(try await SQLiteAcknowledgements(configuration).acknowledgements().count == 3)
    ledger.close()
  }

  @Test(TestPostgreSQL.isAvailable) func databaseKeepsNotes() async throws {
    try await TestPostgreSQL.withSchema { database in
      let ledger = try PostgreSQLLedger(
        PostgreSQLLedgerConfiguration(database: database), logger: TestPostgreSQL.quietLogger)
      try await keepsNotes(ledger)
      ledger.close()
    }
  }
}
