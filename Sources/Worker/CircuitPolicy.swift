/// When a push service counts as unavailable, so that it is left alone but for a probe now and then.
package struct CircuitPolicy: Hashable, Sendable {
  /// So many pushes in a row without an answer on their merits, ...
  package var misses = 20
  /// ... the first of them so long ago: connections that break all at once are no outage.
  package var after = Duration.seconds(3)

  /// No answer at all for so long while pushes are in flight: then nobody's next send waits any more for what was sent
  /// there first.
  package var patience = Duration.seconds(2)
  /// And for so long, while at least `misses` pushes are in flight: it counts as unavailable before their time is up.
  package var silence = Duration.seconds(5)

  package init() {}
}
