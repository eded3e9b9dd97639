import FanfareCore

/// The times of a send's stages in one column: about ten bytes.
///
/// The four times of `SendTimes`; then, if any device has one, the two times of each device in the order of the column
/// `devices`. Each is a varint: 0 if it is unknown, else one more than the zigzag-coded number of milliseconds from it
/// to the column `settled_at`.
enum StoredTimes {
  /// Returns nil if no time is known.
  static func bytes(_ times: SendTimes, of devices: [DeviceResult]?, until settledAt: UnixTime) -> [UInt8]? {
    let areDevicesTimed = devices?.contains { $0.pushedAt != nil || $0.answeredAt != nil } == true
    guard areDevicesTimed || !times.isEmpty else { return nil }
    var output: [UInt8] = []
    output.reserveCapacity(12)
    func append(_ time: UnixTime?) {
      guard let time else { return output.append(0) }
      let distance = settledAt.milliseconds &- time.milliseconds
      output.appendVarint(UInt64(bitPattern: distance << 1 ^ distance >> 63) &+ 1)
    }
    for time in [times.consumed, times.lookedUp, times.pushed, times.answered] { append(time) }
    if areDevicesTimed, let devices {
      for device in devices {
        append(device.pushedAt)
        append(device.answeredAt)
      }
    }
    return output
  }

  /// Decodes a column, and gives the devices their times. Returns nil for bytes that no release has written.
  static func decode(
    _ stored: some Sequence<UInt8>, devices: inout [DeviceResult]?, until settledAt: UnixTime
  ) -> SendTimes? {
    var input = [UInt8](stored)[...]
    var times: [UnixTime?] = []
    while !input.isEmpty {
      guard let code = input.popVarint() else { return nil }
      guard code > 0 else {
        times.append(nil)
        continue
      }
      let zigzag = code - 1
      let distance = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
      times.append(UnixTime(milliseconds: settledAt.milliseconds &- distance))
    }
    guard times.count == 4 || times.count == 4 + 2 * (devices?.count ?? 0) else { return nil }
    if times.count > 4, var timed = devices {
      for index in timed.indices {
        timed[index].pushedAt = times[4 + 2 * index]
        timed[index].answeredAt = times[5 + 2 * index]
      }
      devices = timed
    }
    return SendTimes(consumed: times[0], lookedUp: times[1], pushed: times[2], answered: times[3])
  }
}
