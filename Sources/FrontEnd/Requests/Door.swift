import FanfareCore
import HTTPServer
import HTTPTypes
import NIOCore
import Operations
import Synchronization

/// Runs the requests of the callers' listener. The order in which a request is examined, each step with its refusals:
///
/// 1. The listener reads the head: 400, 431 and 501 of `RequestFault`.
/// 2. The request gets its id.
/// 3. A peer that bypasses the proxies: 403. A foreign page with credentials that its browser adds: 403.
/// 4. Routes of the process: files and probes. Then those of other protocols, which answer in their own form.
/// 5. The route: 501 for an unknown method, 404 for an unknown path, 405 for another method of the path.
/// 6. The caller (`AccessControl`): the budget of failed logins 429, credentials 401, the session's token 403, the
///    scopes of the route 403, the quota `reads` 429, permits for a large body 429.
/// 7. The handler: `Idempotency-Key`, media type 415 and size 413 of the body, then the body itself, with
///    `100 Continue` only when it is asked for.
/// 8. The answer gets the fields of every answer, to HEAD without its body, and is counted by the route's pattern.
struct Door: Application {
  private static let notFound = "NotFound"

  let routes: RouteTable<Route>
  let protocols: [any ProtocolRoutes]
  let origins: OriginRule
  let access: AccessControl
  let desk: AnswerDesk
  let mailboxes: SendMailboxes

  func begin(_ exchange: inout Exchange) -> Reply {
    exchange.id = RequestIdentity.requestID(given: exchange.headers.requestID)
    do {
      switch try enter(&exchange) {
      case .taken: return .taken
      case .now(let answer): return .now(finished(answer, exchange))
      case .later(let work):
        let begun = exchange
        return .later { awaited in
          let exchange = begun.awaited(as: awaited.pending)
          do { return finished(try await work(exchange), exchange) } catch {
            return finished(answer(to: error, of: exchange), exchange)
          }
        }
      }
    } catch {
      return .now(finished(answer(to: error, of: exchange), exchange))
    }
  }

  func answer(to fault: RequestFault, requestID: String?) -> Answer {
    let problem = Problem(refusal: Refusal(fault), requestID: RequestIdentity.requestID(given: requestID))
    var headers = problem.headers
    headers[.requestID] = problem.requestID
    return Answer(status: problem.refusal.status, headers: headers, body: problem.document)
  }

  func makeMemory(on eventLoop: any EventLoop) -> (any AnyObject & Sendable)? {
    ConnectionMemory(mailbox: mailboxes.mailbox(of: eventLoop))
  }

  private func enter(_ exchange: inout Exchange) throws -> Reply {
    let match = routes.find(exchange.method, exchange.target)
    if case .found(_, let pattern, let parameters) = match {
      (exchange.pattern, exchange.parameters) = (pattern, parameters)
    }
    try exchange.requireProxy()
    try origins.check(exchange)
    for routes in protocols {
      if case .found(let route, _, _) = match, route.isOfProcess { break }
      guard let pattern = routes.pattern(of: exchange) else { continue }
      exchange.pattern = pattern
      return .later { exchange in
        do { return try await routes.respond(to: exchange) } catch {
          let refusal = Refusal(describing: error)
          desk.log(refusal, causedBy: error, requestID: exchange.id)
          return routes.answer(to: refusal, of: exchange)
        }
      }
    }
    switch match {
    case .found(let route, _, _):
      switch route.handler {
      case .open(let begin): return try begin(exchange)
      case .admitted(let begin): return try access.admit(exchange, to: route, begin: begin)
      }
    case .unknownMethod:
      exchange.pattern = Self.notFound
      throw Refusal(.notImplemented, "this server does not know the request's method")
    case .unknownPath:
      exchange.pattern = Self.notFound
      throw Refusal(.notFound, "there is no such route")
    case .otherMethods(let methods):
      exchange.pattern = Self.notFound
      var refusal = Refusal(.methodNotAllowed, "this path does not have the method \(exchange.method.rawValue)")
      refusal.allowedMethods = methods.sorted { $0.rawValue < $1.rawValue }
      throw refusal
    }
  }

  private func answer(to error: any Error, of exchange: Exchange) -> Answer {
    desk.answer(to: Refusal(describing: error), causedBy: error, requestID: exchange.id)
  }

  private func finished(_ answer: Answer, _ exchange: Exchange) -> Answer {
    var answer = answer
    desk.complete(&answer, requestID: exchange.id)
    // Clients would read a body as the beginning of the next answer.
    if exchange.method == .head { answer = answer.withoutBody }
    // The client has gone before the answer: its status would count a failure that is not the server's.
    if exchange.pending?.isAbandoned ?? false { return answer }
    desk.metrics.record(.now - exchange.start, method: exchange.method, route: exchange.pattern, status: answer.status)
    return answer
  }
}

/// What the front end remembers of a connection.
final class ConnectionMemory: Sendable {
  let callers = Mutex(RememberedCallers())
  let mailbox: SendMailbox

  init(mailbox: SendMailbox) { self.mailbox = mailbox }
}

extension Exchange {
  var memory: ConnectionMemory? { connection.memory as? ConnectionMemory }

  /// The certificate that the client has presented to a TLS listener that asks for one. That of a trusted proxy is not
  /// the client's.
  var clientCertificate: ClientCertificate? {
    connection.isProxy ? nil : connection.certificate.map { ClientCertificate(der: $0) }
  }

  /// Throws `.forbidden` if the peer has bypassed the proxies that end TLS. Probes may come from any address.
  fileprivate func requireProxy() throws(Refusal) {
    guard connection.bypassesProxies, method != .get || !OperationsRoutes.isProbe(path) else { return }
    throw Refusal(
      .forbidden,
      "without TLS, other machines may connect only through the proxies in api.proxies; connect to the proxy")
  }
}
