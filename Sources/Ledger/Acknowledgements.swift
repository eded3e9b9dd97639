package import FanfareCore
import GRDB
import Store

/// An operator's note that a problem of the audit at a place in the log is known.
package struct Acknowledgement: Sendable, Hashable {
  /// The most characters of a reason.
  package static let maximumReasonLength = 500

  package let topic: String
  package let partition: Int32
  package let offset: Int64
  package let reason: String
  package let at: UnixTime

  package init(topic: String, partition: Int32, offset: Int64, reason: String, at: UnixTime) {
    (self.topic, self.partition, self.offset) = (topic, partition, offset)
    (self.reason, self.at) = (reason, at)
  }
}

/// Keeps acknowledgements in the ledger's database.
package protocol AcknowledgementStore: Sendable {
  /// All of them, in no particular order. Throws `LedgerError`, with `notThere` if there is no ledger yet.
  func acknowledgements() async throws -> [Acknowledgement]

  /// Keeps one, instead of an earlier one of the same place. Creates the ledger if necessary. Throws `LedgerError`.
  func acknowledge(_ acknowledgement: Acknowledgement) async throws
}

/// The acknowledgements in the ledger's SQLite file, which the ledger may write at the same time.
package struct SQLiteAcknowledgements: AcknowledgementStore {
  private let configuration: LedgerStoreConfiguration

  package init(_ configuration: LedgerStoreConfiguration) { self.configuration = configuration }

  package func acknowledgements() async throws -> [Acknowledgement] {
    try await LedgerReader(configuration).read { db in
      try Row.fetchAll(db, sql: "SELECT topic, partition, log_offset, reason, acknowledged_at FROM acknowledgements")
        .map {
          Acknowledgement(
            topic: $0[0], partition: $0[1], offset: $0[2], reason: $0[3], at: UnixTime(milliseconds: $0[4]))
        }
    }
  }

  package func acknowledge(_ acknowledgement: Acknowledgement) async throws {
    do {
      let pool = try LedgerFile.openForWriting(configuration)
      try await pool.write { db in
        try db.execute(
          sql: "INSERT OR REPLACE INTO acknowledgements VALUES (?, ?, ?, ?, ?)",
          arguments: [
            acknowledgement.topic, acknowledgement.partition, acknowledgement.offset, acknowledgement.reason,
            acknowledgement.at.milliseconds,
          ])
      }
      try pool.close()
    } catch {
      throw LedgerFile.ledgerError(error)
    }
  }
}

extension PostgreSQLLookup {
  private static let selectAcknowledgements = PreparedStatement(
    "SELECT topic, part, log_offset, reason, acknowledged_at FROM ledger_acknowledgements")
  private static let replaceAcknowledgement = PreparedStatement(
    """
    INSERT INTO ledger_acknowledgements (topic, part, log_offset, reason, acknowledged_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (topic, part, log_offset)
    DO UPDATE SET reason = EXCLUDED.reason, acknowledged_at = EXCLUDED.acknowledged_at
    """)

  func acknowledgements() throws -> [Acknowledgement] {
    let rows = try connection.query(Self.selectAcknowledgements)
    return try (0..<rows.count).map { row in
      Acknowledgement(
        topic: try rows.text(row, 0), partition: Int32(truncatingIfNeeded: try rows.integer(row, 1)),
        offset: try rows.integer(row, 2), reason: try rows.text(row, 3),
        at: UnixTime(milliseconds: try rows.integer(row, 4)))
    }
  }

  func acknowledge(_ acknowledgement: Acknowledgement) throws {
    try connection.query(
      Self.replaceAcknowledgement,
      [
        .text(acknowledgement.topic), .int4(acknowledgement.partition), .int8(acknowledgement.offset),
        .text(acknowledgement.reason), .int8(acknowledgement.at.milliseconds),
      ])
  }
}
