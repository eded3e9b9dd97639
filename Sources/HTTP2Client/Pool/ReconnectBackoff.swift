import NIOCore

/// Backoff after failed connections: doubles from `first` to `longest`, with a random part of up to half taken off, so
/// that many processes do not reconnect in step.
struct ReconnectBackoff {
  /// The pause after the first failure.
  let first: TimeAmount
  /// The longest pause.
  let longest: TimeAmount
  /// Failures since the last success.
  private(set) var failures = 0
  /// No connection may be opened before this moment.
  private(set) var notBefore = NIODeadline.uptimeNanoseconds(0)

  init(first: TimeAmount, longest: TimeAmount) {
    self.first = first
    self.longest = longest
  }

  /// Counts a failure at `now` and returns the pause. Connections that fail during a pause were opened before it and
  /// are part of the same failure.
  mutating func recordFailure(at now: NIODeadline) -> TimeAmount {
    guard now >= notBefore else { return notBefore - now }
    failures += 1
    let doubled = Double(first.nanoseconds) * Double(sign: .plus, exponent: min(failures - 1, 30), significand: 1)
    let full = min(doubled, Double(longest.nanoseconds))
    let pause = TimeAmount.nanoseconds(Int64(full * Double.random(in: 0.5...1)))
    notBefore = now + pause
    return pause
  }

  /// Resets the backoff after a connection has proved to work.
  mutating func reset() {
    failures = 0
    notBefore = .uptimeNanoseconds(0)
  }
}
