package import FanfareCore
import Store

extension RegistryDatabase: RegistrationImportStore {
  private static let columns = "first_byte, next_byte, \(ImportCounts.columns)"
  private static let insertBatch = PreparedStatement(
    """
    INSERT INTO import_batches (hub, file, \(columns), finished_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    """)
  private static let selectBatches = PreparedStatement(
    "SELECT \(columns) FROM import_batches WHERE hub = ?1 AND file = ?2 ORDER BY first_byte")
  private static let selectBatch = PreparedStatement(
    "SELECT \(columns) FROM import_batches WHERE hub = ?1 AND file = ?2 AND first_byte = ?3")
  private static let deleteBatches = PreparedStatement("DELETE FROM import_batches WHERE hub = ?1 AND file = ?2")

  /// With one writer one at a time, and small, because other writers wait for it. Else two batches at the server while
  /// a third is prepared, and large ones: the more rows are sorted together, the more of them share a page of an index.
  package var importShape: (batches: Int, bytes: Int) { hasOneWriter ? (1, 1024 * 1024) : (2, 8 * 1024 * 1024) }

  package func take(_ batch: ImportBatch, at now: UnixTime) async throws -> ImportOutcome {
    let outcome = try await write { [limits] session in
      if let file = batch.file {
        let done = try session.first(
          Self.selectBatch, [.hub(batch.hub), .id(file), .integer(batch.bytes.lowerBound)], FinishedImportBatch.init)
        if let done { return ImportOutcome(counts: done.counts) }
      }
      var outcome = ImportOutcome(counts: batch.counts)
      switch session.engine {
      case .sqlite:
        let table = RegistrationTable(session, batch.hub)
        for line in batch.lines { try table.take(line, within: limits, at: now, &outcome) }
      case .postgreSQL(let connection):
        outcome = try PostgreSQLImport(connection, batch.hub, within: limits, at: now).take(batch)
      }
      if let file = batch.file {
        try session.run(
          Self.insertBatch,
          [.hub(batch.hub), .id(file), .integer(batch.bytes.lowerBound), .integer(batch.bytes.upperBound)]
            + ImportCounts.fields.map { Value.int(outcome.counts[keyPath: $0]) } + [.time(now)])
      }
      return outcome
    }
    SurplusDevices.count(outcome.surplus, of: batch.hub)
    return outcome
  }

  package func finishedBatches(of file: ImportID, hub: HubName) async throws -> [FinishedImportBatch] {
    try await read { try $0.all(Self.selectBatches, [.hub(hub), .id(file)], FinishedImportBatch.init) }
  }

  package func forget(_ file: ImportID, hub: HubName) async throws {
    _ = try await write { try $0.run(Self.deleteBatches, [.hub(hub), .id(file)]) }
  }
}

extension FinishedImportBatch {
  fileprivate init(_ row: Row) throws {
    let counts = try ImportCounts.fields.indices.map { try row.integer(Int32($0) + 2) }
    self.init(bytes: try row.integer(0)..<row.integer(1), counts: ImportCounts(counts))
  }
}

extension RegistrationTable {
  /// Imports one line.
  fileprivate func take(
    _ line: RegistrationLine, within limits: RegistrationLimits, at now: UnixTime, _ outcome: inout ImportOutcome
  ) throws {
    let holder = try holder(of: line.registration.address).flatMap { try find($0) }
    let installed = try line.registration.heldInstallation.flatMap { try owner(of: $0) }.flatMap { id in
      try id == holder?.id ? holder : find(id)
    }
    let id = ImportJudgement.id(of: line, holder: holder?.id, installed: installed?.id)
    let stored = try holder?.id == id ? holder : find(id)
    let judgement = ImportJudgement(
      line, id: id, stored: stored?.registration, holder: holder?.registration, installed: installed?.registration)
    let isNew = stored?.registration == nil && holder?.registration == nil && installed == nil
    guard let registration = outcome.count(judgement, of: line, isNew: isNew) else { return }
    for other in [holder, installed] {
      guard let other, other.id != id else { continue }
      try remove(other, leaving: Tombstone(cause: .merged, detail: id.description, at: now))
    }
    if stored == nil { try deleteTombstone(of: id) }
    // Another holder of the handle was just removed.
    try put(registration, in: RegistrationClaim(id: id, stored: stored, holder: id))
    try settleOwner(ofHandle: registration.handle, at: now)
    if stored?.registration == nil {
      outcome.surplus += try removeSurplus(of: registration.user, keeping: registration, within: limits, at: now)
    }
  }
}
