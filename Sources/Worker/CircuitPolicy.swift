/// When a push service counts as unavailable, so that it is left alone but for a probe now and then.
package struct CircuitPolicy: Hashable, Sendable {
  /// So many pushes in a row without an answer on their merits, ...
  package var misses = 20
  /// ... the first of them so long ago: connections that break all at once are no outage.
  package var after = Duration.seconds(3)

  package init() {}
}
