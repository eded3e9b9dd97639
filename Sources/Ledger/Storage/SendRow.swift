import FanfareCore
import Foundation
import GRDB

/// A row of the table of sends, for what one statement cannot do: items of sends that have several, and records that come out of order.
struct SendRow {
  private(set) var isAnnounced: Bool
  private(set) var knownParts: Int
  private(set) var settledParts: Int
  /// What all settled items have in common; `.settled` where they differ.
  private(set) var state: StatusRecord.State?
  private(set) var settledAt: UnixTime?
  private(set) var firstPart: Int64?
  private(set) var tally: Tally
  /// Nil when there are more than are kept.
  private(set) var devices: [DeviceResult]?
  let acceptedAt: UnixTime
  let sender: String?
  let audience: String

  static let columns =
    "is_announced, known_parts, settled_parts, state, settled_at, part_0, counts, devices, accepted_at, sender, audience"

  /// Reads `columns`. Throws when no release has written the row.
  init(_ row: Row) throws {
    isAnnounced = row[0]
    knownParts = row[1]
    settledParts = row[2]
    if let code = row[3] as UInt8? {
      guard let state = StoredCode.state(code) else { throw Self.damaged }
      self.state = state
    }
    settledAt = (row[4] as Int64?).map(UnixTime.init(milliseconds:))
    firstPart = row[5]
    if let stored = row[6] as Data? {
      guard let tally = Tally(stored: stored) else { throw Self.damaged }
      self.tally = tally
      devices = nil
    } else {
      guard let devices = StoredDevices.decode(row[7] as Data? ?? Data()) else { throw Self.damaged }
      self.devices = devices
      tally = Tally(devices)
    }
    acceptedAt = UnixTime(milliseconds: row[8])
    sender = row[9]
    audience = row[10]
  }

  /// A send of which nothing is known but that this item of it has ended.
  init(_ settlement: LedgerEntry.Settlement) {
    isAnnounced = false
    knownParts = 1
    settledParts = 0
    tally = Tally()
    devices = []
    acceptedAt = settlement.acceptedAt
    sender = settlement.sender
    audience = settlement.audience
  }

  /// Whether every known item has ended.
  var isSettled: Bool { settledParts >= knownParts }

  /// Where the send stands, as callers are told.
  var report: SendReport.State {
    guard isSettled, let state else { return .accepted }
    return switch state {
    case .settled: .settled
    case .noTarget: .noTarget
    case .expired: .expired
    case .deadLettered: .deadLettered
    }
  }

  /// Adds an item that is not in the row yet. The result is the same in whatever order items come.
  mutating func add(_ settlement: LedgerEntry.Settlement, maximumDevices: Int) {
    knownParts = max(knownParts, settlement.part + 1)
    settledParts += 1
    state = state.map { $0 == settlement.state ? $0 : .settled } ?? settlement.state
    settledAt = max(settledAt ?? settlement.settledAt, settlement.settledAt)
    if settlement.part == 0 { firstPart = settlement.digest }
    tally.add(settlement.tally)
    guard let held = devices, let more = settlement.devices, held.count + more.count <= maximumDevices else {
      devices = nil
      return
    }
    // One item keeps its order of dispatch; several have none in common.
    devices = held.isEmpty ? more : more.isEmpty ? held : (held + more).sorted { $0.registration < $1.registration }
  }

  /// The columns that items change, for `settled_parts` to `devices` of an insert or update.
  var itemColumns: [DatabaseValue] {
    [
      knownParts.databaseValue, settledParts.databaseValue, (state.map { Int64(StoredCode.code($0)) }).databaseValue,
      (settledAt?.milliseconds).databaseValue, firstPart.databaseValue,
      (devices == nil ? tally.stored : nil).databaseValue, devices.map(StoredDevices.encode).databaseValue,
    ]
  }

  /// The file holds what no release has written.
  static let damaged = LedgerError(.unusable, "the ledger holds a row that it cannot read")
}

extension Optional where Wrapped: DatabaseValueConvertible {
  /// The value, or NULL.
  fileprivate var databaseValue: DatabaseValue { self?.databaseValue ?? .null }
}
