import FanfareCore
import Foundation

/// How many devices ended how: a few numbers per send.
struct Tally: Sendable {
  /// One of the ways a device can end.
  struct Key: Hashable, Sendable {
    let platform: Platform
    let outcome: DeviceResult.Outcome
  }

  private(set) var entries: [(key: Key, count: Int)] = []

  init() {}

  /// Counts the devices.
  init(_ devices: [DeviceResult]) {
    for device in devices { add(1, to: Key(platform: device.platform, outcome: device.outcome)) }
  }

  /// Counts more of a kind. A linear search: there are eighteen kinds, and a send seldom has more than two.
  mutating func add(_ count: Int, to key: Key) {
    if let index = entries.firstIndex(where: { $0.key == key }) {
      entries[index].count += count
    } else {
      entries.append((key, count))
    }
  }

  /// Counts what the other has counted.
  mutating func add(_ other: Tally) {
    for (key, count) in other.entries { add(count, to: key) }
  }

  /// The numbers by platform and outcome.
  var counts: [Platform: [DeviceResult.Outcome: Int]] {
    var counts: [Platform: [DeviceResult.Outcome: Int]] = [:]
    for (key, count) in entries { counts[key.platform, default: [:]][key.outcome, default: 0] += count }
    return counts
  }

  /// As a column keeps it: for each kind its two numbers in one byte, and the count as a varint.
  var stored: Data {
    var output: [UInt8] = []
    for (key, count) in entries {
      output.append(StoredCode.code(key.platform) << 4 | StoredCode.code(key.outcome))
      output.appendVarint(UInt64(max(0, count)))
    }
    return Data(output)
  }

  /// Reads a column; nil when no release has written it.
  init?(stored: Data) {
    var input = [UInt8](stored)[...]
    while let kind = input.popFirst() {
      guard let platform = StoredCode.platform(kind >> 4), let outcome = StoredCode.outcome(kind & 0xF),
        let count = input.popVarint()
      else { return nil }
      add(Int(clamping: count), to: Key(platform: platform, outcome: outcome))
    }
  }
}
