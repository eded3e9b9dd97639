import FanfareCore
import PostgreSQL
import Roles

extension Crowd {
  /// Fills the tables of a registry that has just been made, as fast as the server takes rows, and builds their keys
  /// afterwards.
  func load(into pool: PostgreSQLPool) async throws {
    let keys = [("registrations", "hub, id"), ("handles", "hub, handle"), ("tags", "hub, tag, registration")]
    try await pool.withConnection { connection in
      for (table, _) in keys { try connection.execute("ALTER TABLE \(table) DROP CONSTRAINT \(table)_pkey") }
    }
    try await withThrowingTaskGroup { group in
      group.addTask { try await copy(into: "registrations", pool, writeRegistration) }
      group.addTask { try await copy(into: "handles", pool, writeHandle) }
      group.addTask { try await copy(into: "tags", pool, writeTags) }
      try await group.waitForAll()
    }
    for (table, key) in keys {
      try await pool.withConnection { connection in
        try connection.execute("ALTER TABLE \(table) ADD PRIMARY KEY (\(key))")
        // Also marks pages as visible to everybody, which otherwise the first readers would do.
        try connection.execute("VACUUM (ANALYZE) \(table)")
      }
    }
  }

  private func copy(
    into table: String, _ pool: PostgreSQLPool, _ write: @escaping @Sendable (Device, inout CopyWriter) throws -> Void
  ) async throws {
    try await pool.transaction { connection in
      // A table that was emptied in the same transaction takes rows that are old already, and need no second visit.
      try connection.execute("TRUNCATE \(table)")
      _ = try connection.copyIn("COPY \(table) \(Self.columns[table] ?? "") FROM STDIN (FORMAT binary, FREEZE)") {
        rows in
        for number in 0..<devices { try write(device(number), &rows) }
      }
    }
  }

  private static let columns = [
    "registrations": "(hub, id, username, platform, handle, tags, registered_at, created_at)",
    "handles": "(hub, handle, registration, platform, registered_at)",
    "tags": "(hub, tag, registration, platform, handle, registered_at, created_at)",
  ]

  @Sendable private func writeRegistration(_ device: Device, _ rows: inout CopyWriter) throws {
    try rows.row(columns: 8)
    rows.text(HubName.default.rawValue)
    rows.uuid(high: device.id.high, low: device.id.low)
    rows.text(Population.user(device.user))
    rows.int2(Int16(PlatformSet(device.platform).rawValue))
    rows.text(utf8: device.handle)
    rows.value(.texts(device.tags.sorted()))
    rows.int8(registeredAt)
    rows.int8(registeredAt)
  }

  @Sendable private func writeHandle(_ device: Device, _ rows: inout CopyWriter) throws {
    try rows.row(columns: 5)
    rows.text(HubName.default.rawValue)
    rows.text(utf8: device.handle)
    rows.uuid(high: device.id.high, low: device.id.low)
    rows.int2(Int16(PlatformSet(device.platform).rawValue))
    rows.int8(registeredAt)
  }

  @Sendable private func writeTags(_ device: Device, _ rows: inout CopyWriter) throws {
    for tag in device.tags {
      try rows.row(columns: 7)
      rows.text(HubName.default.rawValue)
      rows.text(tag)
      rows.uuid(high: device.id.high, low: device.id.low)
      rows.int2(Int16(PlatformSet(device.platform).rawValue))
      rows.text(utf8: device.handle)
      rows.int8(registeredAt)
      rows.int8(registeredAt)
    }
  }
}
