import FanfareCore
import HTTP2
import HTTPServer
import HTTPTypes
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
struct SecureServices: Application {
  /// A fault has ended the connection.
  private struct Dropped: Error {}

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

  func begin(_ exchange: inout Exchange) -> Reply { .later { try await respond(to: $0) } }

  func answer(to fault: RequestFault, requestID: String?) -> Answer { Answer(status: .badRequest) }

  private func respond(to exchange: Exchange) async throws -> Answer {
    guard let bytes = try await exchange.body.collect(upTo: Self.maximumBodyBytes) else {
      return Answer(status: .contentTooLarge, headers: [.connection: "close"])
    }
    let body = Array(buffer: bytes)
    if let other = reactionOfOthers(to: exchange, body: body) { return try await perform(other) }
    let reaction: Reaction
    switch (exchange.method, String(exchange.path)) {
    case (.post, "/token"): reaction = google.react(to: Self.form(exchange, body: body))
    case (.post, "/accesstoken.srf"): reaction = microsoft.reactLive(to: Self.form(exchange, body: body))
    case (.post, let path):
      if let tenant = MicrosoftToken.tenant(inPath: path) {
        reaction = microsoft.reactEntra(to: Self.form(exchange, body: body), tenant: tenant)
      } else {
        reaction = wns.react(to: Self.notification(exchange, body: body))
      }
    default: reaction = wns.react(to: Self.notification(exchange, body: body))
    }
    return try await perform(reaction)
  }

  private func reactionOfOthers(to exchange: Exchange, body: [UInt8]) -> Reaction? {
    guard !others.isEmpty else { return nil }
    let request = SimulatedRequest(
      method: exchange.method.rawValue, target: exchange.target.text, headers: Self.headers(of: exchange), body: body)
    // Not with `lazy`, which would ask twice.
    for other in others {
      if let reaction = other.reaction(to: request, injector, at: clock.now()) { return reaction }
    }
    return nil
  }

  private func perform(_ reaction: Reaction) async throws -> Answer {
    if reaction.delay > .zero { try await Task.sleep(for: reaction.delay) }
    switch reaction.ending {
    case .answer(let answer):
      var headers = HTTPFields()
      for field in answer.headers {
        if let name = HTTPField.Name(field.name) { headers.append(HTTPField(name: name, value: field.value)) }
      }
      // The HTTP/1.1 counterpart of GOAWAY.
      if reaction.goAway { headers[.connection] = "close" }
      return Answer(status: .init(code: answer.status), headers: headers, body: answer.body)
    case .silence:
      try await Task.sleep(for: Self.patience)
      throw Dropped()
    case .dropConnection, .reset: throw Dropped()
    }
  }

  /// The form of a token request; empty if the content type is another.
  private static func form(_ exchange: Exchange, body: [UInt8]) -> FormBody {
    let mediaType = exchange.headers[.contentType]?.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    return FormBody(mediaType == "application/x-www-form-urlencoded" ? body : [])
  }

  private static func notification(_ exchange: Exchange, body: [UInt8]) -> WNSRequest {
    WNSRequest(
      method: exchange.method.rawValue, target: exchange.target.text,
      headers: headers(of: exchange), body: body)
  }

  /// All fields but `Host`, with the letter case of their names.
  private static func headers(of exchange: Exchange) -> [HeaderField] {
    exchange.headers.all.filter { $0.name.lowercased() != "host" }.map { HeaderField($0.name, $0.value) }
  }
}

extension ListenerConfiguration {
  /// A listener of the simulator. It trusts its clients, which are on the same machine.
  init(simulating host: String, port: Int, tls: ServerTLS? = nil) {
    self.init(
      host: host, port: port,
      budgets: ByteBudgets(
        bodies: ByteBudget(limit: 1 << 30, largest: 1 << 30), answers: ByteBudget(limit: 1 << 30, largest: 1 << 30)))
    self.tls = tls
    maximumConnections = 10_000
    (idleTimeout, firstRequestTimeout) = (.seconds(3600), .seconds(60))
  }
}
