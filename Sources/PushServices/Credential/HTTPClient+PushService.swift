import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

extension HTTPClient {
  /// Threads that no client runs on now. They never end: a look-up of a name may outlast its client, and comes back to
  /// them.
  private static let idleThreads = Mutex<[MultiThreadedEventLoopGroup]>([])

  /// Runs `body` with a client for token endpoints and WNS: HTTP/1.1 with connections kept alive, and no redirects,
  /// which would take credentials elsewhere.
  ///
  /// It has a thread of its own while it runs: NIO's look-ups of names wait for one another on each thread, and a slow
  /// one would hold up other services and other hubs. A connection that cannot be made fails what waits for it at once;
  /// whoever asked knows when to ask again.
  static func withPushService(
    tls: TLSConfiguration, maximumConnectionsPerHost: Int, _ body: (HTTPClient) async -> Void
  ) async {
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls,
      redirectConfiguration: .disallow,
      timeout: .init(connect: .seconds(5)))
    configuration.httpVersion = .http1Only
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = maximumConnectionsPerHost
    configuration.connectionPool.retryConnectionEstablishment = false
    // The one that has been idle longest.
    let idle = idleThreads.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    let group = idle ?? MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    await body(client)
    // The connections may be in any state; what matters of them is over.
    try? await client.shutdown()
    idleThreads.withLock { $0.append(group) }
  }
}
