import NIOCore

/// What a pool knows of one of its connections.
struct PooledConnection<Handle: Sendable> {
  /// Where the connection is in its life.
  enum Phase: Hashable {
    /// Being set up.
    case connecting
    /// Takes requests.
    case ready
    /// Takes none any more and ends with its last stream.
    case draining
  }

  /// The number of the connection in the pool.
  let id: Int
  /// How to reach it.
  let handle: Handle
  /// The connection this one is to replace once it is ready.
  let predecessor: Int?
  /// Where it is in its life.
  var phase = Phase.connecting
  /// Whether the next connection has to wait because of this one.
  var hasFailed = false
  /// When it became ready.
  var readySince = NIODeadline.uptimeNanoseconds(0)
  /// Its stream limit, as of its last turn.
  var streamLimit = 0
  /// Its streams, as of its last turn.
  var openStreams = 0
  /// Whether it found the queue empty while it had room, and waits to be woken.
  var isHungry = false
  /// Since when it has had no stream; nil while it has some.
  var idleSince: NIODeadline?

  /// Whether it can take no further request.
  var isSaturated: Bool { openStreams >= streamLimit }
}
