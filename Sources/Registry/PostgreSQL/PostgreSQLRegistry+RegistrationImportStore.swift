package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: RegistrationImportStore {
  private static let insertBatch = PreparedStatement(
    """
    INSERT INTO import_batches (hub, file, first_byte, next_byte, finished_at, \(ImportCounts.columns))
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    """)
  private static let selectBatches = PreparedStatement(
    "SELECT first_byte, next_byte, \(ImportCounts.columns) FROM import_batches WHERE hub = $1 AND file = $2 ORDER BY first_byte"
  )
  private static let selectBatch = PreparedStatement(
    "SELECT first_byte, next_byte, \(ImportCounts.columns) FROM import_batches WHERE hub = $1 AND file = $2 AND first_byte = $3"
  )
  private static let deleteBatches = PreparedStatement("DELETE FROM import_batches WHERE hub = $1 AND file = $2")

  /// Two batches at the server while a third is prepared. Large ones: the more rows are sorted together, the more of
  /// them share a page of an index.
  package var importShape: (batches: Int, bytes: Int) { (2, 8 * 1024 * 1024) }

  package func take(_ batch: ImportBatch, at now: UnixTime) async throws -> ImportOutcome {
    let outcome = try await write { [limits] connection in
      if let file = batch.file {
        let done = try connection.query(
          Self.selectBatch, [.text(batch.hub.rawValue), .id(file), .int8(batch.bytes.lowerBound)])
        if done.count == 1 { return ImportOutcome(counts: try Self.finished(done, 0).counts) }
      }
      let outcome = try PostgreSQLImport(connection, batch.hub, within: limits, at: now).take(batch)
      if let file = batch.file {
        let place: [Parameter] = [.int8(batch.bytes.lowerBound), .int8(batch.bytes.upperBound), .time(now)]
        let counts = ImportCounts.fields.map { Parameter.int8(Int64(outcome.counts[keyPath: $0])) }
        try connection.query(Self.insertBatch, [.text(batch.hub.rawValue), .id(file)] + place + counts)
      }
      return outcome
    }
    SurplusDevices.count(outcome.surplus, of: batch.hub)
    return outcome
  }

  package func finishedBatches(of file: ImportID, hub: HubName) async throws -> [FinishedImportBatch] {
    try await read { connection in try Self.finished(connection, file, hub) }
  }

  package func forget(_ file: ImportID, hub: HubName) async throws {
    try await write { connection in _ = try connection.query(Self.deleteBatches, [.text(hub.rawValue), .id(file)]) }
  }

  private static func finished(
    _ connection: PostgreSQLConnection, _ file: ImportID, _ hub: HubName
  ) throws -> [FinishedImportBatch] {
    let rows = try connection.query(selectBatches, [.text(hub.rawValue), .id(file)])
    return try (0..<rows.count).map { try finished(rows, $0) }
  }

  private static func finished(_ rows: ResultRows, _ row: Int) throws -> FinishedImportBatch {
    let counts = try ImportCounts.fields.indices.map { try rows.integer(row, Int32($0) + 2) }
    return FinishedImportBatch(
      bytes: try rows.integer(row, 0)..<(try rows.integer(row, 1)), counts: ImportCounts(counts))
  }
}
