import FanfareCore

/// The numeric codes of enumerations in stored columns. Never change one.
enum StoredCode {
  static func code(_ outcome: DeviceResult.Outcome) -> UInt8 {
    switch outcome {
    case .delivered: 1
    case .rejected: 2
    case .deviceGone: 3
    case .expired: 4
    case .failed: 5
    case .unconfirmed: 6
    }
  }

  static func outcome(_ code: UInt8) -> DeviceResult.Outcome? {
    DeviceResult.Outcome.allCases.first { StoredCode.code($0) == code }
  }

  static func code(_ state: StatusRecord.State) -> UInt8 {
    switch state {
    case .settled: 1
    case .noTarget: 2
    case .expired: 3
    case .deadLettered: 4
    case .cancelled: 5
    }
  }

  static func state(_ code: UInt8) -> StatusRecord.State? {
    StatusRecord.State.allCases.first { StoredCode.code($0) == code }
  }
}

extension LedgerTotals {
  /// Sets the number of devices of a stored kind. Throws `SendRow.damaged` for codes that no release has written.
  mutating func setDevices(_ count: Int, platform: UInt8, outcome: UInt8) throws {
    guard let platform = Platform(stored: Int64(platform)), let outcome = StoredCode.outcome(outcome) else {
      throw SendRow.damaged
    }
    devices[platform, default: [:]][outcome] = count
  }
}

/// The results of single devices in one column: about 25 bytes each, where rows of their own would cost a look-up each.
enum StoredDevices {
  static func bytes(_ devices: [DeviceResult]) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(devices.count * 24)
    for device in devices {
      for word in [device.registration.high, device.registration.low] {
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
          output.append(UInt8(truncatingIfNeeded: word >> shift))
        }
      }
      output.append(device.platform, device.outcome)
      output.appendVarint(UInt64(clamping: device.status))
      output.appendVarint(UInt64(clamping: device.attempts))
      output.append(reason: device.reason)
    }
    return output
  }

  /// Decodes a column; nil for bytes that no release has written.
  static func decode(_ stored: some Sequence<UInt8>) -> [DeviceResult]? {
    var input = [UInt8](stored)[...]
    var devices: [DeviceResult] = []
    while !input.isEmpty {
      guard let registration = RegistrationID(bytes: input.prefix(16)) else { return nil }
      input = input.dropFirst(16)
      guard let (platform, outcome) = input.popKind(), let status = input.popVarint(),
        let attempts = input.popVarint(), let reason = input.popReason()
      else { return nil }
      devices.append(
        DeviceResult(
          registration: registration, platform: platform, outcome: outcome, reason: reason,
          status: Int(clamping: status), attempts: Int(clamping: attempts)))
    }
    return devices
  }
}

extension OutcomeCounts {
  /// The stored form: for each kind its two codes in one varint, and the count as a varint.
  var storedBytes: [UInt8] {
    var output: [UInt8] = []
    for (kind, count) in entries {
      output.append(kind.platform, kind.outcome)
      output.appendVarint(UInt64(max(0, count)))
    }
    return output
  }

  /// Decodes a column; nil for bytes that no release has written.
  init?(stored: some Sequence<UInt8>) {
    self.init()
    var input = [UInt8](stored)[...]
    while !input.isEmpty {
      guard let (platform, outcome) = input.popKind(), let count = input.popVarint() else { return nil }
      add(Int(clamping: count), to: Kind(platform, outcome))
    }
  }
}

extension FailureCounts {
  /// The stored form: for each kind its two codes in one varint, the count as a varint, and the reason.
  var storedBytes: [UInt8] {
    var output: [UInt8] = []
    for (kind, count) in entries {
      output.append(kind.platform, kind.outcome)
      output.appendVarint(UInt64(max(0, count)))
      output.append(reason: kind.reason)
    }
    return output
  }

  /// Decodes a column; nil for bytes that no release has written.
  init?(stored: some Sequence<UInt8>) {
    self.init()
    var input = [UInt8](stored)[...]
    while !input.isEmpty {
      guard let (platform, outcome) = input.popKind(), let count = input.popVarint(), let reason = input.popReason()
      else { return nil }
      add(Int(clamping: count), to: Kind(platform, outcome, reason: reason))
    }
  }
}

extension [UInt8] {
  /// Appends two codes: one byte for the platforms with the codes 1 to 7.
  fileprivate mutating func append(_ platform: Platform, _ outcome: DeviceResult.Outcome) {
    appendVarint(UInt64(platform.code) << 4 | UInt64(StoredCode.code(outcome)))
  }

  /// Appends the length and the text of a reason. Reasons come from a fixed vocabulary; the limit of 64 bytes is for a
  /// faulty writer.
  fileprivate mutating func append(reason: String) {
    let bytes = reason.utf8.prefix(64)
    appendVarint(UInt64(bytes.count))
    append(contentsOf: bytes)
  }
}

extension ArraySlice<UInt8> {
  /// Removes two codes from the front; nil for codes that this release does not know.
  fileprivate mutating func popKind() -> (Platform, DeviceResult.Outcome)? {
    guard let kind = popVarint(), kind < 64 << 4, let platform = Platform(stored: Int64(kind >> 4)),
      let outcome = StoredCode.outcome(UInt8(kind & 0xF))
    else { return nil }
    return (platform, outcome)
  }

  /// Removes a reason from the front; nil when there is no complete one.
  fileprivate mutating func popReason() -> String? {
    guard let length = popVarint(), length <= count else { return nil }
    defer { self = dropFirst(Int(length)) }
    return String(decoding: prefix(Int(length)), as: UTF8.self)
  }
}

/// Unsigned LEB128: seven bits per byte, the lowest first, the eighth bit set on all but the last byte.
extension [UInt8] {
  mutating func appendVarint(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}

extension ArraySlice<UInt8> {
  /// Removes a number from the front; nil when there is no complete one.
  mutating func popVarint() -> UInt64? {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while shift < 64, let byte = popFirst() {
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return number }
      shift += 7
    }
    return nil
  }
}
