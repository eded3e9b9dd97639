import FanfareCore
import HTTP2
import HTTPServer
import HTTPTypes
import Logging
import NIOCore
import NIOSSL
import Synchronization

extension HTTP2Server {
  /// The listener of a service.
  convenience init(
    _ service: any SimulatedPushService, faults: FaultRegistry, configuration: SimulatorConfiguration,
    tls: TLSConfiguration, group: any EventLoopGroup, logger: Logger
  ) {
    let platform = type(of: service).platform
    let goAwayReason = Array(type(of: service).goAwayReason.utf8)
    var server = HTTP2ServerConfiguration(
      host: configuration.host, port: configuration.ports[platform, default: 0], tls: tls)
    server.maximumConcurrentStreams = type(of: service).streams ?? 1
    server.refusesHandshake = { faults.refusesHandshake(of: SimulatedService(platform)) }
    self.init(configuration: server, eventLoopGroup: group, logger: logger) { request, responder in
      let reaction = service.reaction(to: request, on: responder.connection.id)
      responder.perform(reaction, goAwayReason: goAwayReason)
    }
  }
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

/// The HTTP/1.1 listener over TLS, which all services share: the first that knows a request reacts to it.
struct SecureServices: Application {
  /// A fault has ended the connection.
  private struct Dropped: Error {}

  let services: [any SimulatedPushService]

  /// The most bytes of a request's body.
  static let maximumBodyBytes = 64 * 1024
  /// How long an unanswered request is kept.
  private static let patience: Duration = .seconds(600)

  func begin(_ exchange: inout Exchange) -> Reply { .later { try await respond(to: $0) } }

  func answer(to fault: RequestFault, requestID: String?) -> Answer { Answer(status: .badRequest) }

  private func respond(to exchange: Exchange) async throws -> Answer {
    guard let body = try await exchange.body.collect(upTo: Self.maximumBodyBytes) else {
      return Answer(status: .contentTooLarge, headers: [.connection: "close"])
    }
    let fields = exchange.headers.all.map { HeaderField($0.name, $0.value) }
    let host = fields.first { $0.isNamed("host") }?.value
    let request = SimulatedRequest(
      method: exchange.method.rawValue, target: exchange.target.text, authority: host ?? "",
      headers: fields.filter { !$0.isNamed("host") }, body: Array(buffer: body))
    for service in services {
      if let reaction = service.reaction(to: request) { return try await perform(reaction) }
    }
    return Answer(status: .notFound)
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
