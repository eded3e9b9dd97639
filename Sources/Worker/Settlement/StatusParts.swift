import FanfareCore

/// How the results of one send are spread over status records, each of which must stay well below the largest message Kafka takes.
enum StatusParts {
  /// The devices' results by part, of at most `limit` each; one part, perhaps empty, where they fit.
  static func split(_ results: [DeviceResult], limit: Int) -> [[DeviceResult]] {
    guard results.count > limit else { return [results] }
    return stride(from: 0, to: results.count, by: limit).map { Array(results[$0..<min($0 + limit, results.count)]) }
  }
}
