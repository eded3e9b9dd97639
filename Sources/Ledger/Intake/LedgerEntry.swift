import FanfareCore
import Foundation

/// The content of one record in the form in which it is stored.
///
/// The payloads are classes because a batch is sorted and divided several times: a copy costs one reference count.
enum LedgerEntry: Sendable {
  case accepted(Acceptance)
  case settled(Settlement)

  /// An accepted send, from the sends topic.
  final class Acceptance: Sendable {
    let send: SendID
    let hub: HubName
    let acceptedAt: UnixTime
    let sender: String?
    let audience: String

    init(_ send: SendRequest) {
      self.send = send.id
      hub = send.hub
      acceptedAt = send.acceptedAt
      sender = send.sender.map(Audience.bounded)
      audience = send.audience.text
    }
  }

  /// A settled work item, or several consecutive ones, from the status topic.
  final class Settlement: Sendable {
    let send: SendID
    let hub: HubName
    let part: Int
    let parts: Int
    /// The number of work items, from `part` on.
    let span: Int
    let attempt: DispatchID?
    let state: StatusRecord.State
    let acceptedAt: UnixTime
    let settledAt: UnixTime
    let sender: String?
    let audience: String
    /// A hash of the content: distinguishes a record that is read again from another record of the same work item.
    let digest: Int64
    let tally: OutcomeCounts
    /// The results of single devices; nil when there are more than are kept.
    let devices: [DeviceResult]?
    let failures: FailureCounts
    let times: SendTimes

    init(_ record: StatusRecord, maximumDevices: Int) {
      send = record.send
      hub = record.hub
      part = record.part
      parts = record.parts
      span = record.span
      attempt = record.attempt
      state = record.state
      acceptedAt = record.acceptedAt
      settledAt = record.settledAt
      sender = record.sender.map(Audience.bounded)
      audience = record.audience.text
      digest = record.digest
      var tally = OutcomeCounts(record.devices)
      tally.add(record.counts)
      self.tally = tally
      devices = tally.total <= maximumDevices && record.counts.isEmpty ? record.devices : nil
      failures = FailureCounts(record.devices)
      // Pages that ended without being pushed had no stages.
      times = record.span == 1 ? record.times : SendTimes()
    }

    /// The numbers of the work items.
    var range: Range<Int> { part..<part + span }

    var storedState: Int16 { Int16(StoredCode.code(state)) }
    var storedCounts: [UInt8]? { devices == nil ? tally.storedBytes : nil }
    var storedDevices: [UInt8]? { devices.map(StoredDevices.bytes) }

    /// The stored form of `failures`; nil if they follow from `devices` or there are none.
    var storedFailures: [UInt8]? { devices == nil && !failures.isEmpty ? failures.storedBytes : nil }

    /// The value of the column `times`; nil if none is known.
    var storedTimes: [UInt8]? { StoredTimes.bytes(times, of: devices, until: settledAt) }

    /// The attempt's key in a store: its id, if any, and its number of parts, so that parts of different divisions are
    /// never combined.
    var attemptKey: [UInt8] {
      var key = attempt?.bytes ?? []
      key.appendVarint(UInt64(parts))
      return key
    }
  }

  var send: SendID {
    switch self {
    case .accepted(let acceptance): acceptance.send
    case .settled(let settlement): settlement.send
    }
  }

  var hub: HubName {
    switch self {
    case .accepted(let acceptance): acceptance.hub
    case .settled(let settlement): settlement.hub
    }
  }

  var acceptedAt: UnixTime {
    switch self {
    case .accepted(let acceptance): acceptance.acceptedAt
    case .settled(let settlement): settlement.acceptedAt
    }
  }

  /// The latest time in the entry.
  var time: UnixTime {
    switch self {
    case .accepted(let acceptance): acceptance.acceptedAt
    case .settled(let settlement): max(settlement.acceptedAt, settlement.settledAt)
    }
  }
}

extension StatusRecord {
  /// A 64-bit hash of the record's content, the same in every process and release: multiply and fold per word. Stored,
  /// so it must never change.
  fileprivate var digest: Int64 {
    var hash: UInt64 = 0x9E37_79B9_7F4A_7C15
    func mix(_ word: UInt64) {
      hash = (hash ^ word) &* 0xFF51_AFD7_ED55_8CCD
      hash ^= hash >> 32
    }
    mix(UInt64(StoredCode.code(state)))
    mix(UInt64(bitPattern: acceptedAt.milliseconds))
    mix(UInt64(bitPattern: settledAt.milliseconds))
    if parts > 1 {
      mix(UInt64(part) << 32 | UInt64(parts))
      mix(attempt?.high ?? 0)
      mix(attempt?.low ?? 0)
    }
    if span > 1 { mix(UInt64(span)) }
    for device in devices {
      mix(device.registration.high)
      mix(device.registration.low)
      mix(UInt64(device.platform.code) << 8 | UInt64(StoredCode.code(device.outcome)))
      mix(UInt64(truncatingIfNeeded: device.status) << 32 ^ UInt64(truncatingIfNeeded: device.attempts))
      for byte in device.reason.utf8 { mix(UInt64(byte)) }
    }
    for (kind, count) in counts.entries {
      mix(UInt64(kind.platform.code) << 40 | UInt64(StoredCode.code(kind.outcome)) << 32 ^ UInt64(count))
    }
    return Int64(bitPattern: hash)
  }
}
