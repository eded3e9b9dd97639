import AsyncHTTPClient
import NIOCore
import NIOSSL

extension HTTPClient {
  /// A client for token endpoints and WNS: HTTP/1.1 with connections kept alive, and no redirects, which would take credentials
  /// elsewhere. It must be shut down.
  static func pushService(
    tls: TLSConfiguration, maximumConnectionsPerHost: Int, eventLoopGroup: any EventLoopGroup
  ) -> HTTPClient {
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls,
      redirectConfiguration: .disallow,
      timeout: .init(connect: .seconds(5)))
    configuration.httpVersion = .http1Only
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = maximumConnectionsPerHost
    return HTTPClient(eventLoopGroupProvider: .shared(eventLoopGroup), configuration: configuration)
  }
}
