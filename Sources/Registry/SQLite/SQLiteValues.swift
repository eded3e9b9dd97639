import FanfareCore
import Foundation
import GRDB

extension StoredRegistration {
  /// The columns that `init(_:hub:)` reads.
  static let sqliteColumns = """
    id, user, platform, handle, installation, tags, registered_at, expires_at, created_at, seen_at, profile, valid_until
    """

  /// Reads a row of ``sqliteColumns``. Throws ``damaged``.
  init(_ row: Row, hub: HubName) throws {
    guard let id = RegistrationID(row[0] as Data) else { throw StoredRegistration.damaged }
    let registeredAt = UnixTime(milliseconds: row[6])
    var registration: Registration?
    if let user = row[1] as String? {
      registration = try Registration(
        stored: id, hub: hub, user: user, platform: row[2], address: row[3],
        tags: Self.tags(in: row[5]), installation: row[4],
        registeredAt: registeredAt, createdAt: UnixTime(milliseconds: row[8]),
        seenAt: (row[9] as Int64?).map { UnixTime(milliseconds: $0) }, profile: row[10],
        validUntil: (row[11] as Int64?).map { UnixTime(milliseconds: $0) })
    }
    self.init(
      id: id, handle: row[3], registeredAt: registeredAt,
      expiresAt: (row[7] as Int64?).map { UnixTime(milliseconds: $0) }, registration: registration)
  }

  /// The tags in their column, one a line. Split by bytes: to find characters costs many times as much, and a page has
  /// thousands of tags.
  private static func tags(in column: String) -> [String] {
    column.utf8.split(separator: UInt8(ascii: "\n")).map { String(Substring($0)) }
  }
}

extension Identifier {
  /// The 16 bytes, for a column.
  var data: Data { Data(bytes) }

  /// Reads the 16 bytes of a column; nil for another length.
  init?(_ data: Data) {
    guard data.count == 16 else { return nil }
    // Byte by byte on `Data` itself: a generic conversion costs more, and this runs for each registration read.
    var (high, low): (UInt64, UInt64) = (0, 0)
    var count = 0
    for byte in data {
      if count < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
      count += 1
    }
    self.init(high: high, low: low)
  }
}
