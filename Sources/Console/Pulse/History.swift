/// The figures of a hub in each of the last 900 seconds, oldest first once it is read.
struct History: Sendable {
  static let seconds = 900

  /// The figures of one second.
  struct Point: Hashable, Sendable {
    var accepted = 0.0
    var dispatched = 0.0
    var delivered = 0.0
    var failed = 0.0
    var inFlight = 0.0
    /// The age of the oldest record that waits, of all topics.
    var oldest = 0.0
  }

  private var ring: [Point] = []
  private var next = 0

  mutating func append(_ point: Point) {
    if ring.count < Self.seconds {
      ring.append(point)
    } else {
      ring[next] = point
      next = (next + 1) % Self.seconds
    }
  }

  var points: [Point] { Array(ring[next...] + ring[..<next]) }

  var last: Point? { ring.isEmpty ? nil : ring[(next + ring.count - 1) % ring.count] }
}
