import FanfareCore
import HTTP2
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOSSL
import Synchronization

/// The HTTP/2 listeners of APNs and FCM.
enum HTTP2Listeners {
  /// APNs: one stream at a time until a push has succeeded.
  static func apns(
    _ service: APNsService, faults: FaultRegistry, configuration: SimulatorConfiguration, tls: TLSConfiguration,
    group: any EventLoopGroup, logger: Logger
  ) -> HTTP2Server {
    var server = HTTP2ServerConfiguration(host: configuration.host, port: configuration.apnsPort, tls: tls)
    server.maximumConcurrentStreams = configuration.apnsInitialStreams
    server.refusesHandshake = { faults.refusesHandshake(of: .apns) }
    return HTTP2Server(configuration: server, eventLoopGroup: group, logger: logger) { incoming, responder in
      var request = APNsRequest(body: incoming.body)
      request.method = incoming.method
      request.path = incoming.path
      for (name, value) in incoming.headers { request.add(name, value) }
      responder.perform(service.react(to: request, on: responder.connection.id), goAwayReason: shutdown)
    }
  }

  /// FCM.
  static func fcm(
    _ service: FCMService, faults: FaultRegistry, configuration: SimulatorConfiguration, tls: TLSConfiguration,
    group: any EventLoopGroup, logger: Logger
  ) -> HTTP2Server {
    var server = HTTP2ServerConfiguration(host: configuration.host, port: configuration.fcmPort, tls: tls)
    server.maximumConcurrentStreams = configuration.fcmStreams
    server.refusesHandshake = { faults.refusesHandshake(of: .fcm) }
    return HTTP2Server(configuration: server, eventLoopGroup: group, logger: logger) { incoming, responder in
      var request = FCMRequest(body: incoming.body)
      request.method = incoming.method
      request.path = incoming.path
      request.authority = incoming.authority
      for (name, value) in incoming.headers { request.add(name, value) }
      responder.perform(service.react(to: request), goAwayReason: maximumAge)
    }
  }

  /// The debug data of a GOAWAY of APNs, and of FCM.
  private static let shutdown = Array(#"{"reason":"Shutdown"}"#.utf8)
  private static let maximumAge = Array("max_age".utf8)
}

extension HTTP2Responder {
  /// Performs a reaction. `goAwayReason` is the debug data of a GOAWAY.
  func perform(_ reaction: Reaction, goAwayReason: [UInt8]) {
    if let limit = reaction.streamLimit { connection.setMaximumConcurrentStreams(limit) }
    if reaction.goAway { connection.goAway(debugData: goAwayReason) }
    guard reaction.delay > .zero else { return perform(reaction.ending) }
    connection.eventLoop.scheduleTask(in: TimeAmount(reaction.delay)) { perform(reaction.ending) }
  }

  private func perform(_ ending: Reaction.Ending) {
    switch ending {
    case .answer(let answer):
      var headers = HTTP2Headers()
      for field in answer.headers { headers.append(field.name, field.value, indexing: .withoutIndexing) }
      respond(status: answer.status, headers: headers, body: answer.body)
    case .silence: break
    case .dropConnection: connection.close()
    case .reset(let code): reset(HTTP2ErrorCode(rawValue: code))
    }
  }
}

/// Publishes the endpoints when all listeners are bound, or the error that prevented it.
final class Readiness: Sendable {
  private let state = Mutex(State())

  private struct State {
    var outcome: Result<SimulatorEndpoints, any Error>?
    var waiters: [AsyncStream<Result<SimulatorEndpoints, any Error>>.Continuation] = []
  }

  /// Sets the outcome; only the first call counts.
  func settle(_ outcome: Result<SimulatorEndpoints, any Error>) {
    let waiters = state.withLock { state in
      guard state.outcome == nil else { return state.waiters }
      state.outcome = outcome
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters {
      waiter.yield(outcome)
      waiter.finish()
    }
  }

  /// Waits for the endpoints.
  func endpoints() async throws -> SimulatorEndpoints {
    let (stream, continuation) = AsyncStream.makeStream(of: Result<SimulatorEndpoints, any Error>.self)
    let outcome = state.withLock { state in
      if state.outcome == nil { state.waiters.append(continuation) }
      return state.outcome
    }
    if let outcome { return try outcome.get() }
    for await outcome in stream { return try outcome.get() }
    throw CancellationError()
  }
}

/// The HTTP/1.1 services over TLS: both vendors' token endpoints, recognised by their paths, other services that know
/// their requests, and WNS for the rest.
struct SecureResponder: HTTPResponder {
  typealias Context = ChannelContext

  let google: GoogleToken
  let microsoft: MicrosoftToken
  let wns: WNSService
  let others: [any SimulatedPushService]
  let injector: FaultInjector
  let clock: any WallClock

  /// The most bytes of a request's body.
  static let maximumBodyBytes = 64 * 1024
  /// How long an unanswered request is kept.
  private static let patience: Duration = .seconds(600)

  func respond(to request: Request, context: ChannelContext) async throws -> Response {
    let body: [UInt8]
    do {
      body = Array(buffer: try await request.body.collect(upTo: Self.maximumBodyBytes))
    } catch is NIOTooManyBytesError {
      return Response(status: .contentTooLarge, headers: [.connection: "close"])
    }
    let target = request.head.path ?? "/"
    let path = String(target.prefix { $0 != "?" })
    if let other = reactionOfOthers(to: request, target: target, body: body) {
      return try await perform(other, on: context.channel)
    }
    let reaction: Reaction
    switch (request.method, path) {
    case (.post, "/token"): reaction = google.react(to: Self.form(request, body: body))
    case (.post, "/accesstoken.srf"): reaction = microsoft.reactLive(to: Self.form(request, body: body))
    case (.post, _):
      if let tenant = MicrosoftToken.tenant(inPath: path) {
        reaction = microsoft.reactEntra(to: Self.form(request, body: body), tenant: tenant)
      } else {
        reaction = wns.react(to: Self.notification(request, target: target, body: body))
      }
    default: reaction = wns.react(to: Self.notification(request, target: target, body: body))
    }
    return try await perform(reaction, on: context.channel)
  }

  private func reactionOfOthers(to request: Request, target: String, body: [UInt8]) -> Reaction? {
    guard !others.isEmpty else { return nil }
    let request = SimulatedRequest(
      method: request.method.rawValue, target: target,
      headers: request.headers.map { HeaderField($0.name.rawName, $0.value) }, body: body)
    return others.lazy.compactMap { $0.reaction(to: request, injector, at: clock.now()) }.first
  }

  private func perform(_ reaction: Reaction, on channel: any Channel) async throws -> Response {
    if reaction.delay > .zero { try await Task.sleep(for: reaction.delay) }
    switch reaction.ending {
    case .answer(let answer):
      var headers = HTTPFields()
      for field in answer.headers {
        if let name = HTTPField.Name(field.name) { headers.append(HTTPField(name: name, value: field.value)) }
      }
      // The HTTP/1.1 counterpart of GOAWAY.
      if reaction.goAway { headers[.connection] = "close" }
      return Response(
        status: .init(code: answer.status), headers: headers,
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
    case .silence:
      try await Task.sleep(for: Self.patience)
      fallthrough
    case .dropConnection, .reset:
      channel.close(promise: nil)
      // The channel is closed, so nobody reads this.
      return Response(status: .internalServerError)
    }
  }

  /// The form of a token request; empty if the content type is another.
  private static func form(_ request: Request, body: [UInt8]) -> FormBody {
    let mediaType = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    return FormBody(mediaType == "application/x-www-form-urlencoded" ? body : [])
  }

  private static func notification(_ request: Request, target: String, body: [UInt8]) -> WNSRequest {
    WNSRequest(
      method: request.method.rawValue, target: target,
      headers: request.headers.map { HeaderField($0.name.rawName, $0.value) }, body: body)
  }
}

/// A request context with the connection, for faults that break it.
struct ChannelContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }
}
