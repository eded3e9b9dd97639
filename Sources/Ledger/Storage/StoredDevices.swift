import FanfareCore
import Foundation

/// Each device's result in one column: about 25 bytes a device, where rows of their own would cost a tree look-up each.
enum StoredDevices {
  /// The most bytes kept of a reason. Reasons are words of a fixed vocabulary; this bounds what a faulty writer could
  /// store.
  private static let maximumReasonLength = 64

  /// As a column keeps them.
  static func encode(_ devices: [DeviceResult]) -> Data { Data(bytes(devices)) }

  /// As a column keeps them.
  static func bytes(_ devices: [DeviceResult]) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(devices.count * 24)
    for device in devices {
      for word in [device.registration.high, device.registration.low] {
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
          output.append(UInt8(truncatingIfNeeded: word >> shift))
        }
      }
      output.append(StoredCode.code(device.platform) << 4 | StoredCode.code(device.outcome))
      output.appendVarint(UInt64(clamping: device.status))
      output.appendVarint(UInt64(clamping: device.attempts))
      let reason = device.reason.utf8.prefix(maximumReasonLength)
      output.appendVarint(UInt64(reason.count))
      output.append(contentsOf: reason)
    }
    return output
  }

  /// Reads a column; nil when no release has written it.
  static func decode(_ stored: Data) -> [DeviceResult]? {
    var input = [UInt8](stored)[...]
    var devices: [DeviceResult] = []
    while !input.isEmpty {
      guard let registration = RegistrationID(bytes: input.prefix(16)) else { return nil }
      input = input.dropFirst(16)
      guard let kind = input.popFirst(), let platform = StoredCode.platform(kind >> 4),
        let outcome = StoredCode.outcome(kind & 0xF), let status = input.popVarint(), let attempts = input.popVarint(),
        let length = input.popVarint(), length <= input.count
      else { return nil }
      let reason = String(decoding: input.prefix(Int(length)), as: UTF8.self)
      input = input.dropFirst(Int(length))
      devices.append(
        DeviceResult(
          registration: registration, platform: platform, outcome: outcome, reason: reason,
          status: Int(clamping: status),
          attempts: Int(clamping: attempts)))
    }
    return devices
  }
}
