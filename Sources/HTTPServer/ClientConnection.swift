package import Metrics
package import NIOCore
import Synchronization

/// A connection of a client: where it comes from, and whether it is in use. Shared by its handlers and the table.
package final class ClientConnection: Sendable {
  package let channel: any Channel
  /// The address of the peer: a client or a proxy.
  package let peer: ClientAddress
  /// Whether the peer is a trusted proxy.
  package let isProxy: Bool
  /// Whether the peer has bypassed the proxies that end TLS; its requests are refused.
  package let bypassesProxies: Bool
  /// Whether the listener has TLS.
  let isSecure: Bool
  /// What the application remembers of the connection.
  package let memory: (any AnyObject & Sendable)?
  private let proxies: TrustedProxies
  private let verified = Mutex<[UInt8]?>(nil)
  /// When the connection became idle, in nanoseconds of the event loops' clock; `busy` while a request is open.
  private let idleSince: Atomic<UInt64>
  private let known = Atomic(false)

  private static let busy = UInt64.max

  /// `requiresProxy`: only trusted proxies and this machine may use the listener.
  init(
    channel: any Channel, proxies: TrustedProxies, requiresProxy: Bool, isSecure: Bool = false,
    memory: (any AnyObject & Sendable)? = nil
  ) {
    (self.channel, self.proxies, self.isSecure, self.memory) = (channel, proxies, isSecure, memory)
    peer = ClientAddress(channel.remoteAddress)
    isProxy = proxies.contains(peer)
    bypassesProxies = requiresProxy && !isProxy && !peer.isLoopback
    idleSince = Atomic(NIODeadline.now().uptimeNanoseconds)
  }

  /// The address of the client of a request: the peer, or the client that a trusted proxy names in the value of
  /// `X-Forwarded-For`.
  package func client(forwardedFor: @autoclosure () -> String?) -> ClientAddress {
    isProxy ? proxies.client(in: forwardedFor(), behind: peer) : peer
  }

  /// The client's certificate in DER, verified by TLS. Set before the first request.
  package internal(set) var certificate: [UInt8]? {
    get { verified.withLock { $0 } }
    set { verified.withLock { $0 = newValue } }
  }

  /// Whether a client has authenticated on the connection.
  var isKnown: Bool { known.load(ordering: .relaxed) }

  /// Notes that a client has authenticated.
  package func becomeKnown() { if !isKnown { known.store(true, ordering: .relaxed) } }

  /// The moment since which no request is open; nil while one is.
  var idle: NIODeadline? {
    let since = idleSince.load(ordering: .sequentiallyConsistent)
    return since == Self.busy ? nil : .uptimeNanoseconds(since)
  }

  func becomeBusy() { idleSince.store(Self.busy, ordering: .relaxed) }

  /// Ordered before a look at `ConnectionTable.isFull`: either the table finds the connection idle, or the connection
  /// finds the table full.
  func becomeIdle(at now: NIODeadline) { idleSince.store(now.uptimeNanoseconds, ordering: .sequentiallyConsistent) }
}

/// The open connections of a listener and their places. Thread-safe.
///
/// When all places are taken, the connections that have been idle longest are closed to make room. Those with an
/// authenticated client are closed only if all connections have one. A connection with an open request is not closed.
final class ConnectionTable: Sendable {
  private struct State {
    var connections: [ObjectIdentifier: ClientConnection] = [:]
    var perNetwork: [ClientAddress: Int] = [:]
  }

  /// One in this many places is freed at a time, so that a flood does not pay for a search with every connection.
  private static let share = 64

  private let maximum: Int
  private let maximumPerAddress: Int
  private let state = Mutex(State())
  private let lacksRoom = Atomic(false)
  /// The connections that are accepted, whether added or not yet.
  private let accepted = Atomic(0)
  private let metrics: ConnectionMetrics?

  /// `maximumPerAddress` counts IPv6 addresses by their first 64 bits. Trusted proxies are exempt.
  init(maximum: Int, maximumPerAddress: Int, metrics: ConnectionMetrics? = nil) {
    (self.maximum, self.maximumPerAddress, self.metrics) = (maximum, maximumPerAddress, metrics)
  }

  /// Whether connections wait to be accepted. One that becomes idle then closes itself.
  var isFull: Bool { lacksRoom.load(ordering: .sequentiallyConsistent) }

  /// Adds a connection. Returns false if its address has all the connections it may have.
  func add(_ connection: ClientConnection) -> Bool {
    let network = connection.peer.network
    let (isWelcome, count) = state.withLock { state in
      state.connections[ObjectIdentifier(connection)] = connection
      state.perNetwork[network, default: 0] += 1
      return (connection.isProxy || state.perNetwork[network, default: 0] <= maximumPerAddress, state.connections.count)
    }
    metrics?.open.record(count)
    if !isWelcome { metrics?.refused.increment() }
    // When the gate looked for one to close, this one was not there.
    if isFull { evict(except: connection) }
    return isWelcome
  }

  /// Counts a connection that is closed because it sends too much that leads to no answer.
  func noteFlood() { metrics?.floods.increment() }

  /// Removes a connection that has closed.
  func remove(_ connection: ClientConnection) {
    let network = connection.peer.network
    let count = state.withLock { state in
      guard state.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return -1 }
      state.perNetwork[network, default: 0] -= 1
      if state.perNetwork[network, default: 0] <= 0 { state.perNetwork[network] = nil }
      return state.connections.count
    }
    if count >= 0 { metrics?.open.record(count) }
  }

  /// Returns whether there is room for one more than `count` connections. Otherwise makes room.
  func hasRoom(beside count: Int) -> Bool {
    let hasRoom = count < maximum
    accepted.store(count, ordering: .relaxed)
    lacksRoom.store(!hasRoom, ordering: .sequentiallyConsistent)
    if !hasRoom { evict() }
    return hasRoom
  }

  /// Closes the connections that are idle longest; not the one that is being added: it has no handlers yet.
  private func evict(except added: ClientConnection? = nil) {
    let accepted = accepted.load(ordering: .relaxed)
    let candidates = state.withLock { state -> [(connection: ClientConnection, since: NIODeadline)] in
      let all = state.connections.values
      // Known ones give way only if there is no stranger at all. A busy stranger will be idle soon, and a connection
      // that the gate has accepted but not added to the table yet is a stranger, too.
      let areKnown = all.count >= accepted && all.allSatisfy(\.isKnown)
      return all.compactMap { connection -> (connection: ClientConnection, since: NIODeadline)? in
        // A closed one is removed only after the gate has learnt of it and asks for another.
        guard connection !== added, connection.channel.isActive, areKnown || !connection.isKnown else { return nil }
        return connection.idle.map { (connection: connection, since: $0) }
      }
    }
    let victims = candidates.sorted { $0.since < $1.since }.prefix(max(1, maximum / Self.share))
    for victim in victims { victim.connection.channel.pipeline.fireUserInboundEventTriggered(Eviction()) }
    metrics?.evicted.increment(by: victims.count)
  }
}

/// Asks a connection to close if it is idle.
struct Eviction: Sendable {}

/// The metrics of a listener's connections.
package struct ConnectionMetrics: Sendable {
  /// The open ones.
  let open: Gauge
  /// Those that were closed to make room.
  let evicted: Counter
  /// Those of an address that has all it may have.
  let refused: Counter
  /// Those that sent too much that leads to no answer.
  let floods: Counter

  package init(open: Gauge, evicted: Counter, refused: Counter, floods: Counter) {
    (self.open, self.evicted, self.refused, self.floods) = (open, evicted, refused, floods)
  }
}
