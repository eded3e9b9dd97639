import FanfareCore
import Foundation
import GRDB

/// A row of the table of registrations: an issued id that waits to be completed, or a registration.
struct StoredRegistration {
  let id: RegistrationID
  /// When the id was issued or the app reported its handle last.
  let registeredAt: UnixTime
  /// Until when an issued id waits; nil for a registration.
  let expiresAt: UnixTime?
  /// Nil for an id that is only issued.
  let registration: Registration?

  /// Reads `id, user, platform, handle, installation, tags, registered_at, expires_at, created_at, seen_at`. Throws
  /// when the row is not one that this release could have written.
  init(_ row: Row, hub: HubName) throws {
    guard let id = RegistrationID(row[0] as Data) else { throw StoredRegistration.damaged }
    self.id = id
    registeredAt = UnixTime(milliseconds: row[6])
    expiresAt = (row[7] as Int64?).map { UnixTime(milliseconds: $0) }
    guard let user = row[1] as String? else {
      registration = nil
      return
    }
    guard let platform = Platform(stored: row[2] as Int64) else { throw StoredRegistration.damaged }
    registration = Registration(
      id: id, hub: hub, user: user, platform: platform, handle: row[3],
      tags: (row[5] as String).split(separator: "\n").map(String.init), installation: row[4],
      registeredAt: registeredAt,
      createdAt: UnixTime(milliseconds: row[8]), seenAt: (row[9] as Int64?).map { UnixTime(milliseconds: $0) })
  }

  /// The file holds what no release has written.
  static let damaged = RegistryError(.unavailable, "the registry holds a row that it cannot read")
}

extension Platform {
  /// Reads a stored bit of `PlatformSet`.
  init?(stored bit: Int64) {
    switch bit {
    case 1: self = .apns
    case 2: self = .fcm
    case 4: self = .wns
    default: return nil
    }
  }
}

extension Identifier {
  /// The 16 bytes, for a column.
  var data: Data { Data(bytes) }

  /// Reads a column's 16 bytes; nil for any other number. Concrete on purpose: it runs for every device of every send.
  init?(_ data: Data) {
    guard data.count == 16 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    var count = 0
    for byte in data {
      if count < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
      count += 1
    }
    self.init(high: high, low: low)
  }
}
