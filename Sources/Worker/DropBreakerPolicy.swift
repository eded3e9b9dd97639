/// When so many devices of an app look dead at once that the mistake must be ours: a wrong environment, key or project.
package struct DropBreakerPolicy: Hashable, Sendable {
  /// How many of the latest answers are looked at, per hub and platform.
  package var window = 500
  /// Fewer dead devices than this among them are never suspicious.
  package var minimumCount = 50
  /// From this share of dead devices on nothing is dropped any more; below half of it dropping begins again.
  package var share = 0.5

  package init() {}
}
