package import FanfareCore
import Foundation
import GRDB

extension SQLiteRegistry: TombstoneStore {
  package func tombstones(
    hub: HubName, since: UnixTime, cause: Tombstone.Cause?, after last: BuriedRegistration?, limit: Int
  ) async throws -> [BuriedRegistration] {
    // The index on the time holds the rest of the key as well: rows come in this order without being sorted.
    var sql = "SELECT registration, cause, detail, at FROM tombstones WHERE hub = ?"
    var arguments: StatementArguments = [hub.rawValue]
    if let last {
      sql += " AND (at, registration) > (?, ?)"
      arguments += [last.tombstone.at.milliseconds, last.registration.data]
    } else {
      sql += " AND at >= ?"
      arguments += [since.milliseconds]
    }
    if let cause {
      sql += " AND cause = ?"
      arguments += [cause.rawValue]
    }
    sql += " ORDER BY at, registration LIMIT ?"
    arguments += [max(1, limit)]
    return try await read { [sql, arguments] db in
      try Row.fetchAll(db, sql: sql, arguments: arguments).map { row in
        guard let id = RegistrationID(row[0] as Data), let cause = Tombstone.Cause(rawValue: row[1]) else {
          throw StoredRegistration.damaged
        }
        let tombstone = Tombstone(cause: cause, detail: row[2], at: UnixTime(milliseconds: row[3]))
        return BuriedRegistration(registration: id, tombstone: tombstone)
      }
    }
  }
}
