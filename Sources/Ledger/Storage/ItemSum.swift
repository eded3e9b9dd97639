import FanfareCore
import Foundation
import GRDB

/// What work items of one send have come to together. The same in whatever order they are added.
struct ItemSum: Sendable {
  /// How many were added.
  private(set) var items = 0
  /// What all have in common; where they differ `.cancelled` if any was, and `.settled` otherwise; nil when there is
  /// none.
  private(set) var state: StatusRecord.State?
  /// When the last one ended.
  private(set) var settledAt: UnixTime?
  private(set) var tally = OutcomeCounts()
  /// Nil when there are more than are kept.
  private(set) var devices: [DeviceResult]? = []

  /// The columns of a row that keep it: the number of items in a table's own, then these.
  static let columns = "state, settled_at, counts, devices"

  init() {}

  /// Reads `columns`, which begin at `first`. Throws when no release has written the row.
  init(items: Int, _ row: Row, from first: Int) throws {
    try self.init(
      items: items, state: row[first], settledAt: row[first + 1], counts: row[first + 2] as Data?,
      devices: row[first + 3] as Data?)
  }

  /// From what columns hold. Throws when no release has written it.
  init(items: Int, state code: UInt8?, settledAt: Int64?, counts: Data?, devices stored: Data?) throws {
    self.items = items
    if let code {
      guard let state = StoredCode.state(code) else { throw SendRow.damaged }
      self.state = state
    }
    self.settledAt = settledAt.map(UnixTime.init(milliseconds:))
    if let counts {
      guard let tally = OutcomeCounts(stored: counts) else { throw SendRow.damaged }
      self.tally = tally
      devices = nil
    } else {
      guard let devices = StoredDevices.decode(stored ?? Data()) else { throw SendRow.damaged }
      self.devices = devices
      tally = OutcomeCounts(devices)
    }
  }

  /// Adds an item.
  mutating func add(_ settlement: LedgerEntry.Settlement, maximumDevices: Int) {
    items += 1
    state = state.map { Self.common($0, settlement.state) } ?? settlement.state
    settledAt = max(settledAt ?? settlement.settledAt, settlement.settledAt)
    tally.add(settlement.tally)
    guard let held = devices, let more = settlement.devices, held.count + more.count <= maximumDevices else {
      devices = nil
      return
    }
    // One item keeps its order of dispatch; several have none in common.
    devices = held.isEmpty ? more : more.isEmpty ? held : (held + more).sorted { $0.registration < $1.registration }
  }

  private static func common(_ one: StatusRecord.State, _ other: StatusRecord.State) -> StatusRecord.State {
    if one == other { return one }
    return one == .cancelled || other == .cancelled ? .cancelled : .settled
  }

  /// The values of `columns`.
  var values: [DatabaseValue] {
    [
      (state.map { Int64(StoredCode.code($0)) }).databaseValue, (settledAt?.milliseconds).databaseValue,
      (devices == nil ? tally.stored : nil).databaseValue, devices.map(StoredDevices.encode).databaseValue,
    ]
  }
}

extension Optional where Wrapped: DatabaseValueConvertible {
  /// The value, or NULL.
  var databaseValue: DatabaseValue { self?.databaseValue ?? .null }
}
