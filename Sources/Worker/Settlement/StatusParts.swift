import FanfareCore

/// How the results of one send are spread over status records, each of which must stay well below the largest message Kafka takes.
enum StatusParts {
  /// The devices by part, of at most `limit` each; one part, perhaps empty, where they fit.
  static func split<Device>(_ devices: [Device], limit: Int) -> [ArraySlice<Device>] {
    guard devices.count > limit else { return [devices[...]] }
    return stride(from: 0, to: devices.count, by: limit).map { devices[$0..<min($0 + limit, devices.count)] }
  }
}
