package import FanfareCore
import PostgreSQL

extension PostgreSQLRegistry: TombstoneStore {
  private static let page = PreparedStatement(
    """
    SELECT registration, cause, detail, at FROM tombstones
    WHERE hub = $1 AND (at, registration) >= ($2, $3) AND ($4::text IS NULL OR cause = $4) ORDER BY at, registration LIMIT $5
    """)

  /// A page of a hub's tombstones; see `TombstoneStore`.
  package func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration] {
    let limit = max(1, limit)
    // The last one of the page before comes first again, and is left out.
    let first = (at: last?.tombstone.at ?? since, registration: last?.registration ?? RegistrationSlice.whole.first)
    let buried = try await read { connection in
      let rows = try connection.query(
        Self.page,
        [
          .text(hub.rawValue), .time(first.at), .id(first.registration), .text(cause?.rawValue),
          .int8(Int64(limit) + 1),
        ])
      return try (0..<rows.count).map { row in
        guard let cause = Tombstone.Cause(rawValue: try rows.text(row, 1)) else { throw StoredRegistration.damaged }
        let tombstone = Tombstone(
          cause: cause, detail: try rows.text(row, 2), at: UnixTime(milliseconds: try rows.integer(row, 3)))
        return BuriedRegistration(registration: try rows.identifier(row, 0), tombstone: tombstone)
      }
    }
    return Array(buried.drop { $0 == last }.prefix(limit))
  }
}
