import FanfareCore
import HummingbirdCore
import Metrics
import NIOCore
import Synchronization

/// A connection of a caller: where it comes from, and whether it is in use. Shared by its handlers and the table.
final class ClientConnection: Sendable {
  let channel: any Channel
  /// The address of the peer: a client or a proxy.
  let peer: ClientAddress
  /// Whether the peer is a trusted proxy.
  let isProxy: Bool
  /// Whether the peer has bypassed the proxies that end TLS; its requests are refused.
  let bypassesProxies: Bool
  private let proxies: TrustedProxies
  private let verified = Mutex<ClientCertificate?>(nil)
  private let callers = Mutex(RememberedCallers())
  /// When the connection became idle, in nanoseconds of the event loops' clock; `busy` while a request is open.
  private let idleSince: Atomic<UInt64>
  private let known = Atomic(false)

  private static let busy = UInt64.max

  /// `requiresProxy`: only trusted proxies and this machine may use the listener.
  init(channel: any Channel, proxies: TrustedProxies, requiresProxy: Bool) {
    (self.channel, self.proxies) = (channel, proxies)
    peer = ClientAddress(channel.remoteAddress)
    isProxy = proxies.contains(peer)
    bypassesProxies = requiresProxy && !isProxy && !peer.isLoopback
    idleSince = Atomic(NIODeadline.now().uptimeNanoseconds)
  }

  /// The address of the client of a request: the peer, or the client that a trusted proxy names in the value of
  /// `X-Forwarded-For`.
  func client(forwardedFor: String?) -> ClientAddress {
    isProxy ? proxies.client(in: forwardedFor, behind: peer) : peer
  }

  /// The client's certificate, verified by TLS. Set before the first request.
  var certificate: ClientCertificate? {
    get { verified.withLock { $0 } }
    set { verified.withLock { $0 = newValue } }
  }

  /// Whether a caller has authenticated on the connection.
  var isKnown: Bool { known.load(ordering: .relaxed) }

  /// Notes that a caller has authenticated.
  func becomeKnown() { if !isKnown { known.store(true, ordering: .relaxed) } }

  /// Remembers whom a request was authenticated as.
  func remember(_ entry: RememberedCaller) { callers.withLock { $0.add(entry) } }

  /// Returns whom an earlier request with the same fields was authenticated as.
  func remembered(_ fields: RequestFields, in hub: HubName) -> RememberedCaller? {
    callers.withLock { $0.find(fields.authorization, isProxy ? fields.forwardedFor : nil, hub) }
  }

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

/// The open connections of a front end and their places. Thread-safe.
///
/// When all places are taken, the connections that have been idle longest are closed to make room. Those with an
/// authenticated caller are closed only if all connections have one. A connection with an open request is not closed.
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
  private let open = Gauge(label: "fanfare_http_connections")
  private let evicted = Counter(label: "fanfare_http_connections_closed_total", dimensions: [("reason", "evicted")])
  private let refused = Counter(label: "fanfare_http_connections_closed_total", dimensions: [("reason", "perAddress")])

  private let floods = Counter(label: "fanfare_http_connections_closed_total", dimensions: [("reason", "flood")])

  /// `maximumPerAddress` counts IPv6 addresses by their first 64 bits. Trusted proxies are exempt.
  init(maximum: Int, maximumPerAddress: Int) {
    (self.maximum, self.maximumPerAddress) = (maximum, maximumPerAddress)
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
    open.record(count)
    if !isWelcome { refused.increment() }
    // When the gate looked for one to close, this one was not there.
    if isFull { evict(except: connection) }
    return isWelcome
  }

  /// Counts a connection that is closed because it sends too much that leads to no answer.
  func noteFlood() { floods.increment() }

  /// Removes a connection that has closed.
  func remove(_ connection: ClientConnection) {
    let network = connection.peer.network
    let count = state.withLock { state in
      guard state.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return -1 }
      state.perNetwork[network, default: 0] -= 1
      if state.perNetwork[network, default: 0] <= 0 { state.perNetwork[network] = nil }
      return state.connections.count
    }
    if count >= 0 { open.record(count) }
  }

  /// Returns whether there is room for one more than `count` connections. Otherwise makes room.
  fileprivate func hasRoom(beside count: Int) -> Bool {
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
      // A stranger that is busy or not added yet gives way soon.
      let areKnown = all.count >= accepted && all.allSatisfy(\.isKnown)
      return all.compactMap { connection -> (connection: ClientConnection, since: NIODeadline)? in
        guard connection !== added, areKnown || !connection.isKnown else { return nil }
        return connection.idle.map { (connection: connection, since: $0) }
      }
    }
    let victims = candidates.sorted { $0.since < $1.since }.prefix(max(1, maximum / Self.share))
    for victim in victims { victim.connection.channel.pipeline.fireUserInboundEventTriggered(Eviction()) }
    evicted.increment(by: victims.count)
  }
}

/// Asks a connection to close if it is idle.
struct Eviction: Sendable {}

extension ConnectionTable {
  /// Counts accepted connections, on the event loop that accepts them.
  struct Gate: AvailableConnectionsDelegate {
    private let table: ConnectionTable
    private var count = 0

    init(_ table: ConnectionTable) { self.table = table }

    mutating func connectionOpened() { count += 1 }

    mutating func connectionClosed() { count -= 1 }

    func isAcceptingNewConnections() -> Bool { table.hasRoom(beside: count) }
  }
}
