import HummingbirdCore
import NIOCore
import NIOHTTPTypes
import Synchronization

/// The open connections of an operations listener. Thread-safe.
///
/// When all places are taken, one is freed for a new connection: that of the connection that has been without a request
/// for longest, or else whose client has been reading its answer for long. So slow clients do not keep probes out.
final class OperationsConnections: Sendable {
  private struct Place {
    let channel: any Channel
    /// Since when it waits for a request, or for its client to read.
    var since = NIODeadline.now()
    var hasRequest = false
  }

  /// The time for the head of the first request to arrive, and for an answer to be read while others wait.
  fileprivate static let patience = TimeAmount.seconds(10)

  private let maximum: Int
  private let places = Mutex<[ObjectIdentifier: Place]>([:])

  init(maximum: Int) { self.maximum = maximum }

  /// Makes the handler of a connection.
  func makeHandler(closingAfter timeout: TimeAmount) -> any RemovableChannelHandler {
    OperationsConnectionHandler(self, timeout: timeout)
  }

  fileprivate func add(_ channel: any Channel) {
    places.withLock { $0[ObjectIdentifier(channel)] = Place(channel: channel) }
  }

  fileprivate func remove(_ channel: any Channel) { places.withLock { $0[ObjectIdentifier(channel)] = nil } }

  fileprivate func note(hasRequest: Bool, of channel: any Channel) {
    places.withLock { places in
      places[ObjectIdentifier(channel)]?.hasRequest = hasRequest
      places[ObjectIdentifier(channel)]?.since = .now()
    }
  }

  /// Returns whether there is room for one more than `count` connections. Otherwise makes room.
  fileprivate func hasRoom(beside count: Int) -> Bool {
    guard count >= maximum else { return true }
    let victim = places.withLock { places in
      places.values.filter { !$0.hasRequest || NIODeadline.now() - $0.since > Self.patience }
        .min { ($0.hasRequest ? 1 : 0, $0.since) < ($1.hasRequest ? 1 : 0, $1.since) }?.channel
    }
    victim?.close(promise: nil)
    return false
  }

  /// Counts accepted connections, on the event loop that accepts them.
  struct Gate: AvailableConnectionsDelegate {
    private let connections: OperationsConnections
    private var count = 0

    init(_ connections: OperationsConnections) { self.connections = connections }

    mutating func connectionOpened() { count += 1 }

    mutating func connectionClosed() { count -= 1 }

    func isAcceptingNewConnections() -> Bool { connections.hasRoom(beside: count) }
  }
}

/// Closes a connection whose first request does not come, and notes what the connection waits for.
private final class OperationsConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let connections: OperationsConnections
  private let timeout: TimeAmount
  private var timer: Scheduled<Void>?

  init(_ connections: OperationsConnections, timeout: TimeAmount) {
    (self.connections, self.timeout) = (connections, timeout)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    connections.add(context.channel)
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) { context.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    connections.remove(context.channel)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .head = unwrapInboundIn(data) {
      timer?.cancel()
      connections.note(hasRequest: true, of: context.channel)
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    // Written to the socket.
    let written = promise ?? context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { [connections, channel = context.channel] _ in
      connections.note(hasRequest: false, of: channel)
    }
    context.write(data, promise: written)
  }
}

// The handler and its timer are confined to one event loop.
@available(*, unavailable)
extension OperationsConnectionHandler: Sendable {}
