import FanfareCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import Synchronization

/// Answers the usual requests for sends on the event loop of their connection, without the router and without a task.
///
/// It takes only requests that succeed unless Kafka fails: valid ones of callers that the connection remembers, within
/// quotas that need no database, and without a wish that needs more than Kafka. All others are left to the router with
/// nothing taken or counted, so that there is one place for refusals. The rules are those of the routes.
final class DirectRoutes: Sendable {
  /// What a request's body is.
  private enum Kind {
    case send, notification

    var route: ProtectedRoute { self == .send ? .send : .notify }
  }

  private struct Route {
    let kind: Kind
    let scopes: [Scope]
    /// The router's pattern, for metrics.
    let pattern: String
    let hub: HubName
  }

  private let access: AccessControl
  private let intake: SendIntake
  private let templates: HubTemplates
  private let desk: AnswerDesk
  private let maximumBodySize: Int
  /// By path.
  private let routes: [String: Route]
  private let mailboxes = Mutex<[ObjectIdentifier: LoopMailbox]>([:])

  init(
    hubs: [HubName], access: AccessControl, intake: SendIntake, templates: HubTemplates, desk: AnswerDesk,
    maximumBodySize: Int
  ) {
    (self.access, self.intake, self.desk, self.maximumBodySize) = (access, intake, desk, maximumBodySize)
    self.templates = templates
    var routes: [String: Route] = [:]
    for kind in [Kind.send, .notification] {
      let (path, scopes) = (kind.route.path, kind.route.scopes)
      routes["/\(path)"] = Route(kind: kind, scopes: scopes, pattern: "/\(path)", hub: .default)
      for hub in hubs {
        routes["/hubs/\(hub)/\(path)"] = Route(kind: kind, scopes: scopes, pattern: "/hubs/{hub}/\(path)", hub: hub)
      }
    }
    self.routes = routes
  }

  /// The mailbox of an event loop, for its connections.
  func mailbox(of eventLoop: any EventLoop) -> LoopMailbox {
    mailboxes.withLock { mailboxes in
      let key = ObjectIdentifier(eventLoop)
      let mailbox = mailboxes[key] ?? LoopMailbox(eventLoop)
      mailboxes[key] = mailbox
      return mailbox
    }
  }

  /// Takes a POST request that has arrived whole, if it can be answered directly. Call it on the event loop.
  ///
  /// Returns false for a request that is the router's; then nothing was taken or counted. Otherwise the requester gets
  /// exactly one answer under `number`, after this call.
  func take(
    post target: String, fields: RequestFields, body: ByteBuffer, of connection: ClientConnection, number: Int,
    for requester: NIOLoopBound<any DirectRequester>, via mailbox: LoopMailbox
  ) -> Bool {
    guard !fields.needsRouter, let type = fields.contentType, MediaType.json.isUsual(type),
      body.readableBytes <= maximumBodySize
    else { return false }
    let start = ContinuousClock.now
    let end = target.utf8.firstIndex(of: UInt8(ascii: "?"))
    // No request target has a fragment; the router ignores it.
    if let end, target.utf8[end...].contains(UInt8(ascii: "#")) { return false }
    guard let route = routes[end.map { String(target[..<$0]) } ?? target],
      let caller = access.remembered(fields, in: route.hub, on: connection)
    else { return false }
    var submission: Submission
    do throws(Refusal) {
      try caller.require(anyOf: route.scopes)
      let now = intake.clock.now()
      // Before the body is read: the router reads it again.
      guard caller.hub.quotas.hasPermit(.sends, of: caller.user, at: now) else { return false }
      let origin = SendOrigin(
        traceparent: fields.traceparent, tracestate: fields.tracestate, by: caller, at: now)
      let query = end.map { target[$0...].dropFirst() }
      // The registry may have to decide which user is meant; see `NotificationRoutes`.
      if route.kind == .notification, query?.utf8.contains(UInt8(ascii: "+")) == true { return false }
      submission = try read(Array(body.readableBytesView)[...], query, as: route.kind, from: origin)
    } catch {
      return false
    }
    guard !submission.isHeld else { return false }
    if submission.namesTemplate {
      guard let resolved = submission.resolvedAtOnce(by: templates) else { return false }
      submission = resolved
    }
    let send = AcceptedSend(
      id: submission.send.id, hub: caller.hub, state: route.kind == .send ? .accepted : nil)
    guard let prepared = intake.prepareAtOnce(submission, into: caller.hub) else { return false }
    let request = DirectRequest(
      send: send, prepared: prepared, id: RequestIdentity.requestID(given: fields.requestID), pattern: route.pattern,
      start: start, number: number, requester: requester)
    mailbox.add(request, of: self)
    return true
  }

  private func read(
    _ body: ArraySlice<UInt8>, _ query: Substring?, as kind: Kind, from origin: SendOrigin
  ) throws(Refusal) -> Submission {
    switch kind {
    case .send: return try Submission(reading: body, from: origin, isRepeatable: false)
    case .notification:
      let (platform, recipient) = try NotificationRoutes.target(of: try Query(query.map(String.init)))
      let message = try NotificationRoutes.message(reading: body)
      return try Submission(
        notifying: recipient, on: platform, of: message, id: Identities.send(at: origin.receivedAt), from: origin)
    }
  }

  /// Produces the sends of requests. `completion` is called once for each with its index, on any thread.
  fileprivate func submit(_ requests: [DirectRequest], completion: @escaping @Sendable (Int, SendResult) -> Void) {
    intake.sink.submit(requests.map(\.prepared.record), each: completion)
  }

  /// Answers a request. Call it on the event loop of its connection.
  fileprivate func settle(_ request: DirectRequest, _ result: SendResult, since start: ContinuousClock.Instant) {
    let hub = request.send.hub
    let answer: DirectAnswer
    do throws(Refusal) {
      try intake.finish(request.prepared, result, into: hub, since: start)
      answer = .accepted(request.send, requestID: request.id, date: desk.date)
    } catch {
      hub.metrics.refuse(error.code)
      var response = desk.answer(to: error, causedBy: error, requestID: request.id)
      desk.complete(&response, requestID: request.id)
      answer = .refused(response, Problem(refusal: error, requestID: request.id).document)
    }
    desk.metrics.record(.now - request.start, method: .post, route: request.pattern, status: answer.status)
    request.requester.value.answer(answer, to: request.number)
  }
}

/// Waits for the answers to its direct requests. Confined to its event loop.
protocol DirectRequester: AnyObject {
  /// Called once for each request that was taken. Leaves flushing to `flushAnswers`, unless the connection ends after
  /// this answer. A connection that has closed ignores it.
  func answer(_ answer: DirectAnswer, to number: Int)

  /// Called after a batch, once for each of its answers. Must be idempotent.
  func flushAnswers()
}

/// The answer to a request that was taken.
enum DirectAnswer {
  case accepted(AcceptedSend, requestID: String, date: String)
  /// With the body.
  case refused(Response, [UInt8])

  var status: HTTPResponse.Status {
    switch self {
    case .accepted(let send, _, _): send.status
    case .refused(let response, _): response.status
    }
  }
}

/// A request that was taken.
private struct DirectRequest: Sendable {
  let send: AcceptedSend
  let prepared: PreparedSend
  let id: String
  let pattern: String
  let start: ContinuousClock.Instant
  let number: Int
  let requester: NIOLoopBound<any DirectRequester>
}

/// Requests whose sends are produced together.
private final class DirectBatch: Sendable {
  let routes: DirectRoutes
  let requests: [DirectRequest]
  let start = ContinuousClock.now

  init(_ requests: [DirectRequest], of routes: DirectRoutes) { (self.requests, self.routes) = (requests, routes) }
}

/// Joins the direct requests of an event loop: those that arrive in one turn of the loop are produced together, and the
/// loop is woken once for all results that wait.
final class LoopMailbox: Sendable {
  private struct Delivery {
    let batch: DirectBatch
    let index: Int
    let result: SendResult

    var request: DirectRequest { batch.requests[index] }
  }

  private let eventLoop: any EventLoop
  private let arriving: NIOLoopBoundBox<[DirectRequest]>
  private let delivered = Mutex<[Delivery]>([])

  /// Call it on the event loop.
  fileprivate init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    arriving = NIOLoopBoundBox([], eventLoop: eventLoop)
  }

  /// Adds a request. Call it on the event loop.
  fileprivate func add(_ request: DirectRequest, of routes: DirectRoutes) {
    arriving.value.append(request)
    // Runs after everything that has been read in this turn.
    if arriving.value.count == 1 { eventLoop.execute { self.submit(of: routes) } }
  }

  private func submit(of routes: DirectRoutes) {
    let batch = DirectBatch(arriving.value, of: routes)
    arriving.value.removeAll(keepingCapacity: true)
    routes.submit(batch.requests) { index, result in
      self.post(Delivery(batch: batch, index: index, result: result))
    }
  }

  private func post(_ delivery: Delivery) {
    let isFirst = delivered.withLock { delivered in
      delivered.append(delivery)
      return delivered.count == 1
    }
    if isFirst { eventLoop.execute { self.answer() } }
  }

  private func answer() {
    let deliveries = delivered.withLock { delivered in
      var taken: [Delivery] = []
      taken.reserveCapacity(delivered.count)
      swap(&taken, &delivered)
      return taken
    }
    for delivery in deliveries {
      delivery.batch.routes.settle(delivery.request, delivery.result, since: delivery.batch.start)
    }
    for delivery in deliveries { delivery.request.requester.value.flushAnswers() }
  }
}
