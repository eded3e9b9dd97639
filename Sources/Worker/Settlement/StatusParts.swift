import FanfareCore

/// How the results of one send are spread over status records, each of which must stay well below the largest message Kafka takes.
enum StatusParts {
  /// The devices' results by part; more than one only where there are more than `limit`.
  ///
  /// A device's part follows from its registration id, and the number of parts is a power of two. So a send that is repeated after a crash, when
  /// a few devices have come or gone, puts each device in the part it was in before, and nothing is counted twice.
  static func split(_ results: [DeviceResult], limit: Int) -> [(part: Int, results: [DeviceResult])] {
    guard results.count > limit else { return [(0, results)] }
    var bits = 1
    while results.count > limit << bits { bits += 1 }
    var parts = [[DeviceResult]](repeating: [], count: 1 << bits)
    for result in results { parts[Int(result.registration.high >> UInt64(64 - bits))].append(result) }
    return parts.indices.filter { !parts[$0].isEmpty }.map { ($0, parts[$0]) }
  }
}
