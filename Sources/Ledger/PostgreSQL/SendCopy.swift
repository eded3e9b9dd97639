import FanfareCore
import Store

/// Inserts new sends by `COPY`, at a third of the cost of an upsert. Inserts none if one of them exists.
enum SendCopy {
  private static let columns = [
    "hub", "id", "day", "accepted_at", "is_announced", "hub_key", "sender_key", "audience_key", "sender", "audience",
    "settled_parts", "state", "settled_at", "digest", "counts", "devices", "failures",
    "times",
  ]

  /// Inserts sends, with their `end` if they have one. Throws 23505 when one of them exists.
  static func copy(_ sends: [BatchPlan.Send], on connection: PostgreSQLConnection) throws {
    _ = try connection.copyIn("COPY ledger_sends (\(columns.joined(separator: ", "))) FROM STDIN (FORMAT binary)") {
      rows in
      for send in sends {
        try rows.row(columns: columns.count)
        rows.text(send.key.hub.rawValue)
        rows.uuid(high: send.key.id.high, low: send.key.id.low)
        rows.int4(send.key.day)
        rows.int8(send.acceptedAt.milliseconds)
        rows.bool(send.acceptance != nil)
        rows.int8(send.hubKey)
        rows.int8(send.senderKey)
        rows.int8(send.audienceKey)
        rows.text(send.storedSender)
        rows.text(send.storedAudience)
        guard let end = send.end else {
          rows.int8(0)
          for _ in 11..<columns.count { rows.null() }
          continue
        }
        rows.int8(1)
        rows.int2(end.storedState)
        rows.int8(end.settledAt.milliseconds)
        rows.int8(end.digest)
        rows.bytea(end.storedCounts)
        rows.bytea(end.storedDevices)
        rows.bytea(end.storedFailures)
        rows.bytea(end.storedTimes)
      }
    }
  }
}
