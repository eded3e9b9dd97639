package import FanfareCore
import GRDB

extension SQLiteRegistry: RegistrationImportStore {
  /// One at a time, because there is one writer, and small, because other writers wait for it.
  package var importShape: (batches: Int, bytes: Int) { (1, 1024 * 1024) }

  package func take(_ batch: ImportBatch, at now: UnixTime) async throws -> ImportOutcome {
    let outcome = try await write { db in
      if let file = batch.file {
        let finished = try Self.finished(db, file, batch.hub, from: batch.bytes.lowerBound)
        if let done = finished.first { return ImportOutcome(counts: done.counts) }
      }
      let table = SQLiteRegistrationTable(db, batch.hub)
      var outcome = ImportOutcome(counts: batch.counts)
      for line in batch.lines { try Self.take(line, table, within: limits, at: now, &outcome) }
      if let file = batch.file {
        let sql = """
          INSERT INTO import_batches (hub, file, first_byte, next_byte, finished_at, \(ImportCounts.columns))
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
          """
        let place: StatementArguments = [
          batch.hub.rawValue, file.data, batch.bytes.lowerBound, batch.bytes.upperBound, now.milliseconds,
        ]
        let counts = StatementArguments(ImportCounts.fields.map { outcome.counts[keyPath: $0] })
        try db.cachedStatement(sql: sql).execute(arguments: place + counts)
      }
      return outcome
    }
    SurplusDevices.count(outcome.surplus, of: batch.hub)
    return outcome
  }

  package func finishedBatches(of file: ImportID, hub: HubName) async throws -> [FinishedImportBatch] {
    try await read { db in try Self.finished(db, file, hub) }
  }

  package func forget(_ file: ImportID, hub: HubName) async throws {
    try await write { db in
      try db.execute(
        sql: "DELETE FROM import_batches WHERE hub = ? AND file = ?", arguments: [hub.rawValue, file.data])
    }
  }

  private static func take(
    _ line: RegistrationLine, _ table: SQLiteRegistrationTable, within limits: RegistrationLimits, at now: UnixTime,
    _ outcome: inout ImportOutcome
  ) throws {
    let holder = try table.find(holderOf: line.registration.address)
    let installed = try line.registration.heldInstallation.flatMap { try table.find(installation: $0) }
    let id = ImportJudgement.id(of: line, holder: holder?.id, installed: installed?.id)
    let stored = try holder?.id == id ? holder : table.find(id)
    let judgement = ImportJudgement(
      line, id: id, stored: stored?.registration, holder: holder?.registration, installed: installed?.registration)
    let isNew = stored?.registration == nil && holder?.registration == nil && installed == nil
    guard let registration = outcome.count(judgement, of: line, isNew: isNew) else { return }
    for other in [holder, installed] {
      guard let other, other.id != id else { continue }
      try table.remove(other, leaving: Tombstone(cause: .merged, detail: id.description, at: now))
    }
    if stored == nil { try table.deleteTombstone(of: id) }
    // Another holder of the handle was just removed.
    try table.put(registration, in: RegistrationClaim(id: id, stored: stored, holder: id))
    try table.settleOwner(ofHandle: registration.handle, at: now)
    if stored?.registration == nil {
      outcome.surplus += try table.removeSurplus(of: registration.user, keeping: registration, within: limits, at: now)
    }
  }

  /// The finished batches of a file, or only the one that begins at the byte.
  private static func finished(
    _ db: Database, _ file: ImportID, _ hub: HubName, from firstByte: Int64? = nil
  ) throws -> [FinishedImportBatch] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT first_byte, next_byte, \(ImportCounts.columns) FROM import_batches
        WHERE hub = ? AND file = ?\(firstByte == nil ? "" : " AND first_byte = ?") ORDER BY first_byte
        """)
    let arguments: StatementArguments = [hub.rawValue, file.data] + StatementArguments(firstByte.map { [$0] } ?? [])
    return try Row.fetchAll(statement, arguments: arguments).map { row in
      let counts = ImportCounts.fields.indices.map { row[$0 + 2] as Int64 }
      return FinishedImportBatch(bytes: (row[0] as Int64)..<(row[1] as Int64), counts: ImportCounts(counts))
    }
  }
}
