import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Operations

/// The context of one request: its parameters, logger, id, and where it comes from.
struct FrontEndContext: RequestContext {
  typealias Source = RequestSource

  var coreContext: CoreRequestContextStorage
  /// Set by `AnswerMiddleware`; empty before.
  var requestID = ""
  let connection: ClientConnection
  /// The answer that the client waits for.
  let answer: PendingAnswer
  /// The address of the peer, or of the client that a trusted proxy names.
  let clientAddress: ClientAddress

  init(source: RequestSource) {
    coreContext = CoreRequestContextStorage(source: source)
    connection = source.connection
    answer = source.answer
    clientAddress = source.address
  }

  /// The certificate that the client has presented to a TLS listener that asks for one. That of a trusted proxy is not
  /// the client's.
  var clientCertificate: ClientCertificate? { connection.isProxy ? nil : connection.certificate }

  /// Throws `.forbidden` if the peer has bypassed the proxies that end TLS. Probes may come from any address.
  func requireProxy(for request: Request) throws(Refusal) {
    guard connection.bypassesProxies, request.method != .get || !OperationsRoutes.isProbe(request.uri.path) else {
      return
    }
    throw Refusal(
      .forbidden,
      "without TLS, other machines may connect only through the proxies in api.proxies; connect to the proxy")
  }
}

/// Where a request comes from.
struct RequestSource: RequestContextSource {
  let connection: ClientConnection
  let address: ClientAddress
  let answer: PendingAnswer
  let logger: Logger

  init(_ connection: ClientConnection, address: ClientAddress, answer: PendingAnswer, logger: Logger) {
    (self.connection, self.address, self.answer, self.logger) = (connection, address, answer, logger)
  }
}
