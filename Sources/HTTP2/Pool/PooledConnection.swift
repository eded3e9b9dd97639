import NIOCore

/// A connection's state in `PoolState`.
struct PooledConnection<Handle: Sendable> {
  enum Phase: Hashable {
    /// Being set up.
    case connecting
    /// Takes requests.
    case ready
    /// Takes no requests and ends with its last stream.
    case draining
  }

  let id: Int
  let handle: Handle
  /// The connection that this one replaces when it is ready.
  let predecessor: Int?
  var phase = Phase.connecting
  /// Whether the next connection has to wait because of this one.
  var hasFailed = false
  var readySince = NIODeadline.uptimeNanoseconds(0)
  /// The stream limit as of its last turn.
  var streamLimit = 0
  /// The streams as of its last turn.
  var openStreams = 0
  /// Whether it had room when the queue was empty, and waits to be woken.
  var isHungry = false
  /// Since when it has had no streams; nil while it has some.
  var idleSince: NIODeadline?

  /// Whether it can take no further request.
  var isSaturated: Bool { openStreams >= streamLimit }
}

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
    // in range: `full` is limited by a setting
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
