import NIOCore

/// State machine of a connection pool: which connections to open, wake and close, and which requests wait. It performs
/// nothing; every transition returns actions for the pool.
///
/// Connections pull: each takes from the common queue as many requests as it has room for, so work goes to the
/// connection that is free, and a request waits in one place only.
struct PoolState<Handle: Sendable> {
  /// An action for the pool.
  enum Action {
    /// Open the connection behind this handle.
    case connect(Handle)
    /// Let the connection take requests.
    case wake(Handle)
    /// Let the connection finish its streams and end.
    case drain(Handle)
    /// End the connection now.
    case abort(Handle)
    /// Report these requests as failed.
    case fail([RequestBatch], HTTP2RequestError)
    /// The pool is closed.
    case finish
  }

  enum Phase: Hashable {
    /// Not running yet: requests wait, no connection is opened.
    case idle
    /// Works.
    case running
    /// Takes no requests; the connections finish theirs.
    case closing
    /// Has no connections and opens none.
    case closed
  }

  /// The most requests that a connection takes in one turn: enough to fill the socket, few enough that answers are read
  /// and other connections get their share.
  static var takeLimit: Int { 128 }

  private(set) var phase = Phase.idle
  private var queue = RequestQueue()
  /// In the order of their ids.
  private var connections: [PooledConnection<Handle>] = []
  private var nextID = 1
  /// The generation of all waiting requests, and of all requests on connections that are not draining.
  private var generation = 0
  private var backoff: ReconnectBackoff
  /// Why the last connection failed; nil after one has become ready.
  private var lastFailure: HTTP2ConnectionError?
  private let configuration: HTTP2PoolConfiguration
  private let makeHandle: @Sendable (Int) -> Handle

  /// `makeHandle` makes the handle of the connection with the given id.
  init(configuration: HTTP2PoolConfiguration, makeHandle: @escaping @Sendable (Int) -> Handle) {
    self.configuration = configuration
    self.makeHandle = makeHandle
    backoff = ReconnectBackoff(
      first: TimeAmount(configuration.reconnectBackoff), longest: TimeAmount(configuration.maximumReconnectBackoff))
  }

  var statistics: HTTP2PoolStatistics {
    var statistics = HTTP2PoolStatistics()
    statistics.queued = queue.count
    for connection in connections {
      statistics.openStreams += connection.openStreams
      switch connection.phase {
      case .connecting: statistics.connecting += 1
      case .draining: statistics.draining += 1
      case .ready:
        statistics.connections += 1
        statistics.streamLimit += connection.streamLimit
      }
    }
    return statistics
  }

  // MARK: The pool's own life

  mutating func start(now: NIODeadline) -> [Action] {
    guard phase == .idle else { return [] }
    phase = .running
    return openConnections(now: now)
  }

  /// Refuses new requests, fails the waiting ones, and lets the connections finish.
  mutating func beginClosing() -> [Action] {
    guard phase == .idle || phase == .running else { return [] }
    phase = .closing
    let error = HTTP2RequestError(.closed, wasPossiblyProcessed: false)
    var actions: [Action] = []
    let waiting = queue.takeAll()
    if !waiting.isEmpty { actions.append(.fail(waiting, error)) }
    for index in connections.indices {
      switch connections[index].phase {
      case .connecting: actions.append(.abort(connections[index].handle))
      case .ready: actions.append(.drain(connections[index].handle))
      case .draining: break
      }
      connections[index].phase = .draining
    }
    return actions + finishIfPossible()
  }

  /// Closes the remaining connections when the time for closing is over.
  mutating func abortAll() -> [Action] { connections.map { .abort($0.handle) } }

  /// Replaces all connections; the old ones finish their streams.
  mutating func renew(now: NIODeadline) -> [Action] {
    guard phase == .running else { return [] }
    var actions: [Action] = []
    var wanted = 0
    for index in connections.indices where connections[index].phase == .ready {
      connections[index].phase = .draining
      actions.append(.drain(connections[index].handle))
      wanted += 1
    }
    wanted -= connections.count { $0.phase == .connecting }
    while wanted > 0, backoff.notBefore <= now {
      actions.append(connect())
      wanted -= 1
    }
    return actions + openConnections(now: now)
  }

  /// Handles expired requests and everything that depends on time.
  mutating func tick(now: NIODeadline) -> [Action] {
    var actions: [Action] = []
    let expired = queue.takeExpired(at: now)
    if !expired.isEmpty {
      let reason = lastFailure.map { "no connection: \($0)" } ?? "waited for a free stream"
      actions.append(.fail(expired, HTTP2RequestError(.deadlineExceeded, wasPossiblyProcessed: false, message: reason)))
    }
    guard phase == .running else { return actions }
    actions += openConnections(now: now) + grow(now: now) + replaceAged(now: now) + shrink(now: now) + wakeHungry()
    return actions
  }

  // MARK: Requests

  /// Queues a batch. Returns the part for which there is no room.
  mutating func submit(_ batch: RequestBatch, now: NIODeadline) -> (rejected: RequestBatch?, actions: [Action]) {
    guard phase == .idle || phase == .running else { return (batch, []) }
    guard batch.submission.generation >= generation else { return (nil, [.fail([batch], Self.superseded)]) }
    let renewal = renew(for: batch.submission.generation, now: now)
    var rejected = batch
    queue.append(rejected.split(first: max(0, configuration.maximumQueuedRequests - queue.count)))
    let actions = wakeHungry() + openConnections(now: now)
    return (rejected.requests.isEmpty ? nil : rejected, renewal.isEmpty ? actions : renewal + actions)
  }

  /// Replaces the connections, and fails the requests that wait for them, if they are of an earlier generation.
  private mutating func renew(for generation: Int, now: NIODeadline) -> [Action] {
    guard generation > self.generation else { return [] }
    self.generation = generation
    let waiting = queue.takeAll()
    return (waiting.isEmpty ? [] : [.fail(waiting, Self.superseded)]) + renew(now: now)
  }

  private static var superseded: HTTP2RequestError { HTTP2RequestError(.superseded, wasPossiblyProcessed: false) }

  /// Queues requests again that a connection could not get processed: `first` before all others (it was their turn),
  /// `last` after them (the server is overloaded).
  mutating func requeue(first: [RequestBatch], last: [RequestBatch], now: NIODeadline) -> [Action] {
    guard phase == .running else {
      return [.fail(first + last, HTTP2RequestError(.closed, wasPossiblyProcessed: false))]
    }
    for batch in first.reversed() where batch.submission.generation == generation { queue.prepend(batch) }
    for batch in last where batch.submission.generation == generation { queue.append(batch) }
    let late = (first + last).filter { $0.submission.generation < generation }
    return (late.isEmpty ? [] : [.fail(late, Self.superseded)]) + wakeHungry() + openConnections(now: now)
  }

  /// A connection reports its state and takes the requests it has room for. If `more` is true it should ask again after
  /// this turn.
  mutating func take(id: Int, openStreams: Int, streamLimit: Int, mayTake: Bool, now: NIODeadline) -> (
    batches: [RequestBatch], more: Bool
  ) {
    guard let index = index(of: id) else { return ([], false) }
    let room = connections[index].phase == .ready && mayTake ? max(0, streamLimit - openStreams) : 0
    let queued = queue.count
    let batches = room > 0 && queued > 0 ? queue.take(min(room, Self.takeLimit)) : []
    let taken = queued - queue.count
    connections[index].streamLimit = streamLimit
    connections[index].openStreams = openStreams + taken
    connections[index].isHungry = room > taken && queue.count == 0
    if openStreams + taken > 0 {
      connections[index].idleSince = nil
    } else if connections[index].idleSince == nil {
      connections[index].idleSince = now
    }
    return (batches, room > taken && queue.count > 0)
  }

  // MARK: Connections

  /// A connection got its first answer: the peer is reachable and works. Ignored if the next connection has to wait
  /// because of this one.
  mutating func answered(id: Int) {
    guard let index = index(of: id), !connections[index].hasFailed else { return }
    backoff.reset()
  }

  /// A connection is usable.
  mutating func opened(id: Int, streamLimit: Int, now: NIODeadline) -> [Action] {
    guard let index = index(of: id) else { return [] }
    // The pool may close before the connection's `connect` action is performed.
    guard connections[index].phase != .draining else { return [.drain(connections[index].handle)] }
    guard connections[index].phase == .connecting else { return [] }
    connections[index].phase = .ready
    connections[index].readySince = now
    connections[index].idleSince = now
    connections[index].streamLimit = streamLimit
    lastFailure = nil
    guard let predecessor = connections[index].predecessor.flatMap({ self.index(of: $0) }),
      connections[predecessor].phase == .ready
    else { return [] }
    connections[predecessor].phase = .draining
    return [.drain(connections[predecessor].handle)]
  }

  /// A connection takes no more requests, by its own decision or the peer's. `isFailure`: it was of no use or the peer
  /// sent ENHANCE_YOUR_CALM, so the next one must wait.
  mutating func draining(id: Int, isFailure: Bool, now: NIODeadline) -> [Action] {
    guard let index = index(of: id) else { return [] }
    connections[index].phase = .draining
    if isFailure { _ = recordFailure(of: index, at: now) }
    return openConnections(now: now)
  }

  /// A connection has ended. `isFailure`: it never worked, was of no use or the peer sent ENHANCE_YOUR_CALM, so the
  /// next one must wait. Returns the pause.
  mutating func ended(
    id: Int, isFailure: Bool, error: HTTP2ConnectionError?, now: NIODeadline
  ) -> (pause: TimeAmount, [Action]) {
    guard let index = index(of: id) else { return (.zero, []) }
    var pause = TimeAmount.zero
    if isFailure {
      lastFailure = error
      pause = recordFailure(of: index, at: now)
    }
    connections.remove(at: index)
    return (pause, openConnections(now: now) + wakeHungry() + finishIfPossible())
  }

  // MARK: Decisions

  private func index(of id: Int) -> Int? { connections.firstIndex { $0.id == id } }

  /// Connections that take requests now or soon.
  private var usable: Int { connections.count { $0.phase != .draining } }

  /// Counts a connection's failure once, and returns the remaining pause.
  private mutating func recordFailure(of index: Int, at now: NIODeadline) -> TimeAmount {
    guard !connections[index].hasFailed else { return max(.zero, backoff.notBefore - now) }
    connections[index].hasFailed = true
    return backoff.recordFailure(at: now)
  }

  private mutating func connect(replacing predecessor: Int? = nil) -> Action {
    let handle = makeHandle(nextID)
    connections.append(PooledConnection(id: nextID, handle: handle, predecessor: predecessor))
    nextID += 1
    return .connect(handle)
  }

  /// Opens connections up to the minimum, and one if requests wait and there is none. After a failure, one at a time.
  private mutating func openConnections(now: NIODeadline) -> [Action] {
    guard phase == .running, backoff.notBefore <= now else { return [] }
    var actions: [Action] = []
    let wanted = max(configuration.minimumConnections, queue.count > 0 ? 1 : 0)
    while usable < wanted, backoff.failures == 0 || !connections.contains(where: { $0.phase == .connecting }) {
      actions.append(connect())
    }
    return actions
  }

  /// Opens one more if the queue has waited for `growthDelay` while all connections are full.
  private mutating func grow(now: NIODeadline) -> [Action] {
    guard let oldest = queue.oldestSubmission, now - oldest >= TimeAmount(configuration.growthDelay),
      backoff.notBefore <= now,
      usable < configuration.maximumConnections,
      connections.allSatisfy({ $0.phase == .draining || ($0.phase == .ready && $0.isSaturated) })
    else { return [] }
    return [connect()]
  }

  /// Replaces connections that are too old, one at a time and only when the successor is ready.
  private mutating func replaceAged(now: NIODeadline) -> [Action] {
    guard let age = configuration.maximumConnectionAge, backoff.notBefore <= now,
      !connections.contains(where: { $0.phase == .connecting }),
      let index = connections.firstIndex(where: { $0.phase == .ready && now - $0.readySince >= TimeAmount(age) })
    else { return [] }
    if connections[index].openStreams == 0, queue.count == 0, usable > configuration.minimumConnections {
      connections[index].phase = .draining
      return [.drain(connections[index].handle)]
    }
    return [connect(replacing: connections[index].id)]
  }

  /// Closes connections above the minimum that have been idle for `idleShrinkTime`; not while another one is being set
  /// up, which may replace one of them.
  private mutating func shrink(now: NIODeadline) -> [Action] {
    guard queue.count == 0, !connections.contains(where: { $0.phase == .connecting }) else { return [] }
    var actions: [Action] = []
    var spare = usable - configuration.minimumConnections
    for index in connections.indices.reversed() where spare > 0 && connections[index].phase == .ready {
      guard let idleSince = connections[index].idleSince, now - idleSince >= TimeAmount(configuration.idleShrinkTime)
      else { continue }
      connections[index].phase = .draining
      actions.append(.drain(connections[index].handle))
      spare -= 1
    }
    return actions
  }

  /// Wakes as many hungry connections as the queue can keep busy for a turn. Older ones first, so that the others stay
  /// idle and can be closed.
  private mutating func wakeHungry() -> [Action] {
    var actions: [Action] = []
    var waiting = queue.count
    for index in connections.indices
    where waiting > 0 && connections[index].isHungry && connections[index].phase == .ready {
      connections[index].isHungry = false
      waiting -= min(Self.takeLimit, max(1, connections[index].streamLimit - connections[index].openStreams))
      actions.append(.wake(connections[index].handle))
    }
    return actions
  }

  private mutating func finishIfPossible() -> [Action] {
    guard phase == .closing, connections.isEmpty else { return [] }
    phase = .closed
    return [.finish]
  }
}
