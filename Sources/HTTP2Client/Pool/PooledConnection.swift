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
