import FanfareCore
import Store

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
  init(items: Int, _ row: Row, from first: Int32) throws {
    func bytes(_ column: Int32) throws -> [UInt8]? { row.isNull(column) ? nil : try row.bytes(column) }
    self.items = items
    if let code = try row.optionalInteger(first) {
      guard let state = StoredCode.state(UInt8(truncatingIfNeeded: code)) else { throw SendRow.damaged }
      self.state = state
    }
    settledAt = try row.optionalTime(first + 1)
    if let counts = try bytes(first + 2) {
      guard let tally = OutcomeCounts(stored: counts), let failures = FailureCounts(stored: try bytes(first + 4) ?? [])
      else {
        throw SendRow.damaged
      }
      (self.tally, self.failures) = (tally, failures)
      devices = nil
    } else {
      guard let devices = StoredDevices.decode(try bytes(first + 3) ?? []) else { throw SendRow.damaged }
      self.devices = devices
      (tally, failures) = (OutcomeCounts(devices), FailureCounts(devices))
    }
    if let times = try bytes(first + 5), let end = settledAt {
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

  /// The values of `columns`.
  var values: [Value] {
    [
      .integer(storedState.map { Int64($0) }), .time(settledAt), .bytes(storedCounts), .bytes(storedDevices),
      .bytes(storedFailures), .bytes(storedTimes),
    ]
  }
}

extension ItemSum {
  var storedState: Int16? { state.map { Int16(StoredCode.code($0)) } }
  var storedCounts: [UInt8]? { devices == nil ? tally.storedBytes : nil }
  var storedDevices: [UInt8]? { devices.map(StoredDevices.bytes) }
  var storedFailures: [UInt8]? { devices == nil && !failures.isEmpty ? failures.storedBytes : nil }
  /// The value of the column `times`; nil if none is known.
  var storedTimes: [UInt8]? { settledAt.flatMap { StoredTimes.bytes(times, of: devices, until: $0) } }
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
