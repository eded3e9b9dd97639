/// How long requests take: mostly a time of the usual range, sometimes much longer.
struct Latency {
  var usual: ClosedRange<World.Time>
  /// The share of requests that take longer.
  var slow = 0.0
  /// The longest time that those take.
  var slowest: World.Time

  init(_ usual: ClosedRange<World.Time>, slow: Double = 0, slowest: World.Time) {
    (self.usual, self.slow) = (usual, slow)
    self.slowest = max(slowest, usual.upperBound)
  }

  func sample(in world: World) -> World.Time {
    guard world.happens(slow) else { return world.random(usual) }
    return world.random(usual.upperBound...world.random(usual.upperBound...slowest))
  }
}
