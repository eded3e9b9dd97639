/// When a work item passed through the stages of a worker, by the worker's clock. Unknown times are nil.
///
/// Several items together have the first time of each stage, and the last answer.
package struct SendTimes: Hashable, Sendable {
  /// When a worker took the record.
  package var consumed: UnixTime?
  /// When the registry had answered.
  package var lookedUp: UnixTime?
  /// When the first push was handed to a push service's connections.
  package var pushed: UnixTime?
  /// When a push service gave the last answer.
  package var answered: UnixTime?

  package init(
    consumed: UnixTime? = nil, lookedUp: UnixTime? = nil, pushed: UnixTime? = nil, answered: UnixTime? = nil
  ) {
    self.consumed = consumed
    self.lookedUp = lookedUp
    self.pushed = pushed
    self.answered = answered
  }

  package var isEmpty: Bool { consumed == nil && lookedUp == nil && pushed == nil && answered == nil }

  /// Adds the times of another item.
  package mutating func add(_ other: SendTimes) {
    consumed = Self.either(consumed, other.consumed, min)
    lookedUp = Self.either(lookedUp, other.lookedUp, min)
    pushed = Self.either(pushed, other.pushed, min)
    answered = Self.either(answered, other.answered, max)
  }

  private static func either(
    _ one: UnixTime?, _ other: UnixTime?, _ choose: (UnixTime, UnixTime) -> UnixTime
  ) -> UnixTime? {
    guard let one, let other else { return one ?? other }
    return choose(one, other)
  }
}
