import Dispatch
import NIOCore
import NIOPosix

/// One lookup of a host's addresses, started at once on a queue of its pool.
///
/// NIO's own lookups wait for one another on each event loop, so that one name with unresponsive servers would keep all
/// pools of that loop from connecting.
struct HostLookup: Resolver, Sendable {
  /// Looks up the addresses of a host. Blocks.
  typealias Function = @Sendable (String, Int) throws -> [SocketAddress]

  private let addresses: EventLoopFuture<[SocketAddress]>

  /// Skips the lookup if `deadline` has passed when the queue reaches it.
  init(
    of host: String, port: Int, until deadline: NIODeadline, on queue: DispatchQueue, eventLoop: any EventLoop,
    _ function: @escaping Function
  ) {
    let promise = eventLoop.makePromise(of: [SocketAddress].self)
    addresses = promise.futureResult
    queue.async {
      promise.completeWith(
        Result {
          guard .now() < deadline else {
            throw HTTP2ConnectionError(.connectFailed, "the name was not looked up in time")
          }
          return try function(host, port)
        })
    }
  }

  func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    addresses.map { $0.filter { $0.protocol == .inet } }
  }

  func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    addresses.map { $0.filter { $0.protocol == .inet6 } }
  }

  /// A lookup that has started cannot be stopped.
  func cancelQueries() {}
}
