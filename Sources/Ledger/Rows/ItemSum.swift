import FanfareCore
import Foundation
import GRDB

/// The combined result of several work items of one send, independent of the order in which they are added.
struct ItemSum: Sendable {
  /// The number of items added.
  private(set) var items = 0
  /// The common state of all items; if they differ, `.cancelled` if any was, else `.settled`; nil without items.
  private(set) var state: StatusRecord.State?
  /// When the last item settled.
  private(set) var settledAt: UnixTime?
  private(set) var tally = OutcomeCounts()
  /// The results of single devices; nil when there are more than are kept.
  private(set) var devices: [DeviceResult]? = []
  /// Stored only without `devices`, from which it follows.
  private(set) var failures = FailureCounts()
  /// When the items passed through their stages, taken together.
  private(set) var times = SendTimes()

  /// The columns that store it, after a table's own column for the number of items.
  static let columns = "state, settled_at, counts, devices, failures, times"

  init() {}

  /// Reads `columns`, which begin at `first`. Throws `SendRow.damaged` for values that no release has written.
  init(items: Int, _ row: Row, from first: Int) throws {
    try self.init(
      items: items, state: row[first], settledAt: row[first + 1], counts: row[first + 2] as Data?,
      devices: row[first + 3] as Data?, failures: row[first + 4] as Data?,
      times: row[first + 5] as Data?)
  }

  /// Decodes column values. Throws `SendRow.damaged` for values that no release has written.
  init(
    items: Int, state code: UInt8?, settledAt: Int64?, counts: Data?, devices stored: Data?, failures reasons: Data?,
    times: Data?
  ) throws {
    self.items = items
    if let code {
      guard let state = StoredCode.state(code) else { throw SendRow.damaged }
      self.state = state
    }
    self.settledAt = settledAt.map(UnixTime.init(milliseconds:))
    if let counts {
      guard let tally = OutcomeCounts(stored: counts), let failures = FailureCounts(stored: reasons ?? Data()) else {
        throw SendRow.damaged
      }
      (self.tally, self.failures) = (tally, failures)
      devices = nil
    } else {
      guard let devices = StoredDevices.decode(stored ?? Data()) else { throw SendRow.damaged }
      self.devices = devices
      (tally, failures) = (OutcomeCounts(devices), FailureCounts(devices))
    }
    if let times, let end = self.settledAt {
      guard let times = StoredTimes.decode(times, devices: &devices, until: end) else { throw SendRow.damaged }
      self.times = times
    }
  }

  /// Adds as many of the settlement's items as were missing.
  mutating func add(_ settlement: LedgerEntry.Settlement, items added: Int = 1, maximumDevices: Int) {
    items += added
    state = state.map { Self.common($0, settlement.state) } ?? settlement.state
    settledAt = max(settledAt ?? settlement.settledAt, settlement.settledAt)
    tally.add(settlement.tally)
    failures.add(settlement.failures)
    times.add(settlement.times)
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

  /// The values of `columns`, for SQLite.
  var values: [DatabaseValue] {
    [
      (state.map { Int64(StoredCode.code($0)) }).databaseValue, (settledAt?.milliseconds).databaseValue,
      (devices == nil ? tally.stored : nil).databaseValue, devices.map(StoredDevices.encode).databaseValue,
      storedFailures.map { Data($0) }.databaseValue, storedTimes.map { Data($0) }.databaseValue,
    ]
  }
}

extension ItemSum {
  var storedFailures: [UInt8]? { devices == nil && !failures.isEmpty ? failures.storedBytes : nil }
  /// The value of the column `times`; nil if none is known.
  var storedTimes: [UInt8]? { settledAt.flatMap { StoredTimes.bytes(times, of: devices, until: $0) } }
}

extension Optional where Wrapped: DatabaseValueConvertible {
  /// The value, or NULL.
  var databaseValue: DatabaseValue { self?.databaseValue ?? .null }
}

/// The changes that one transaction makes to a hub's totals; they may be negative.
struct HubDelta {
  var accepted = 0
  var settled = 0
  var noTarget = 0
  var expired = 0
  var deadLettered = 0
  var cancelled = 0
  var unannounced = 0
  var duplicates = 0
  var devices = OutcomeCounts()

  /// Counts a send as settled with a state; `sign` -1 takes it back.
  mutating func count(_ state: StatusRecord.State, _ sign: Int = 1) {
    settled += sign
    switch state {
    case .settled: break
    case .noTarget: noTarget += sign
    case .expired: expired += sign
    case .deadLettered: deadLettered += sign
    case .cancelled: cancelled += sign
    }
  }
}
