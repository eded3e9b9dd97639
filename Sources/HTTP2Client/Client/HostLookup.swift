import Dispatch
import NIOCore
import NIOPosix

/// One look-up of a host's addresses, begun at once, on a queue of its pool's.
///
/// NIO's own look-ups wait for one another on each event loop, so that one name whose servers are silent would keep all
/// pools of the loop from connecting.
struct HostLookup: Resolver, Sendable {
  /// Finds the addresses of a host at a port. Blocks.
  typealias Function = @Sendable (String, Int) throws -> [SocketAddress]

  private let addresses: EventLoopFuture<[SocketAddress]>

  /// Looks up with `function`, unless nobody waits any more at `deadline`, when the queue comes to it.
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

  /// Nothing stops a look-up that has begun.
  func cancelQueries() {}
}
