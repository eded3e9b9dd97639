import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL

extension HTTPClient {
  /// Runs `body` with a client for token endpoints and WNS: HTTP/1.1 with connections kept alive, and no redirects, which would
  /// take credentials elsewhere.
  ///
  /// It has a thread of its own: NIO's look-ups of names wait for one another on each thread, and a slow one would hold up other
  /// services and other hubs. A connection that cannot be made fails what waits for it at once; whoever asked knows when to ask
  /// again.
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
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    await body(client)
    // The connections may be in any state; what matters of them is over. Then the thread can only end.
    try? await client.shutdown()
    try? await group.shutdownGracefully()
  }
}
