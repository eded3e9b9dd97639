/// The platforms of which this worker has devices to push to but no sender.
///
/// *Served* → *unserved*: a send found a device of the platform → *served*, when no send has for a while. By the
/// platform's place in the `SenderTable`.
struct UnservedPlatforms: Sendable {
  /// How long a platform counts as unserved after the last device, in milliseconds.
  private static let memory: Int64 = 600_000

  private var until: [Int: Int64] = [:]

  /// The places, in ascending order.
  var places: [Int] { until.keys.sorted() }

  func contains(_ place: Int) -> Bool { until[place] != nil }

  /// Notes a device of the platform. Returns whether the platform is newly unserved.
  mutating func note(_ place: Int, at uptime: Int64) -> Bool {
    until.updateValue(uptime + Self.memory, forKey: place) == nil
  }

  /// Forgets the platforms of which no device was found for a while.
  mutating func forget(at uptime: Int64) {
    if !until.isEmpty { until = until.filter { uptime < $0.value } }
  }
}
