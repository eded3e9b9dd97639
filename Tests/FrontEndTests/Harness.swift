import AsyncHTTPClient
import FanfareCore
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Operations
import RDKafka
import Support

@testable import FrontEnd

/// A front end that listens on a free port, with the real registry behind it, and the client to talk to it.
struct Harness: Sendable {
  /// What a test may choose; everything else is as in a demonstration.
  struct Setup: Sendable {
    var configuration = FrontEndConfiguration()
    var hubs: [FrontEndHub]?
    var sink: any SendSink = RecordingSink()
    var history: any SendHistory = ScriptedHistory()
    var registry: (any DeviceRegistry & RegistrationDirectory)?
    var secureStore: (any SecurePayloadStore)?
    var claims: (any SendClaimStore)?
    var hasRoom: @Sendable () -> Bool = { true }
    var operations: OperationsRoutes?
    var logger = TestKafka.quietLogger
  }

  /// The methods that are asked for.
  enum Method: String {
    case get = "GET", head = "HEAD", post = "POST", put = "PUT", delete = "DELETE", patch = "PATCH", options = "OPTIONS"
  }

  let port: Int
  let registry: any DeviceRegistry & SecurePayloadStore & BroadcastStore & ScheduledSendStore
  let clock: ManualClock

  /// Opal is an operator, devon may only register devices, sandy may only send; everybody else may do both.
  static let roles = RolePolicy(operators: ["opal"], exceptions: ["devon": [.device], "sandy": [.sender]])

  /// Runs a front end for as long as `body` takes.
  static func run(_ configure: (inout Setup) throws -> Void = { _ in }, _ body: (Harness) async throws -> Void)
    async throws
  {
    var setup = Setup()
    setup.configuration.port = 0
    try configure(&setup)
    let temporary = try TemporaryRegistry()
    let clock = ManualClock()
    let demo = try DemoAuthenticator(boundTo: setup.configuration.host, roles: roles)
    let frontEnd = try FrontEnd(
      configuration: setup.configuration, hubs: setup.hubs ?? [FrontEndHub(name: .default, authenticator: demo)],
      dependencies: FrontEnd.Dependencies(
        registry: setup.registry ?? temporary.registry, secureStore: setup.secureStore ?? temporary.registry,
        claims: setup.claims ?? temporary.registry, broadcasts: temporary.registry,
        schedule: temporary.registry, history: setup.history, sink: setup.sink,
        hasRoom: setup.hasRoom, clock: clock),
      operations: setup.operations, logger: setup.logger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await frontEnd.run() }
      let harness = Harness(port: try await frontEnd.boundPort(), registry: temporary.registry, clock: clock)
      try await body(harness)
      group.cancelAll()
      while let result = await group.nextResult() {
        if case .failure(let error) = result, !(error is CancellationError) { throw error }
      }
    }
  }

  /// Runs a front end that produces to the test's Kafka, in topics of its own.
  static func runWithKafka(
    _ configure: (inout Setup) throws -> Void = { _ in }, _ body: (Harness, TestKafka, Topics) async throws -> Void
  ) async throws {
    let kafka = try TestKafka.shared()
    let topics = try await kafka.sendsTopic()
    try await kafka.withProducer { producer in
      try await run({ setup in
        setup.sink = KafkaSink(producer: producer)
        setup.configuration.topics = topics
        try configure(&setup)
      }) { try await body($0, kafka, topics) }
    }
  }

  /// Makes a request as a user whose password is the name; nil: without credentials.
  func request(
    _ method: Method, _ path: String, as user: String? = "alice", body: String? = nil,
    type: String? = "application/json;charset=utf-8", headers: [(String, String)] = []
  ) async throws -> Reply {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.method = HTTPMethod(rawValue: method.rawValue)
    if let user { request.headers.add(name: "Authorization", value: Self.basic(user, user)) }
    if let body {
      request.body = .bytes(ByteBuffer(string: body))
      if let type { request.headers.add(name: "Content-Type", value: type) }
    }
    for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
    return try await execute(request)
  }

  /// Makes a request as alice whose body is any bytes.
  func request(_ method: Method, _ path: String, bytes: [UInt8], type: String) async throws -> Reply {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.method = HTTPMethod(rawValue: method.rawValue)
    request.headers.add(name: "Authorization", value: Self.basic("alice", "alice"))
    request.headers.add(name: "Content-Type", value: type)
    request.body = .bytes(ByteBuffer(bytes: bytes))
    return try await execute(request)
  }

  /// Posts bytes as JSON.
  func post(_ bytes: [UInt8], to path: String) async throws -> Reply {
    try await execute(post(to: path, body: .bytes(ByteBuffer(bytes: bytes))))
  }

  /// Posts bytes as JSON in pieces, without telling beforehand how many there will be.
  func postInChunks(_ bytes: [UInt8], to path: String) async throws -> Reply {
    let pieces = stride(from: 0, to: bytes.count, by: 10_000).map {
      ByteBuffer(bytes: bytes[$0..<min($0 + 10_000, bytes.count)])
    }
    let stream = AsyncStream { continuation in
      for piece in pieces { continuation.yield(piece) }
      continuation.finish()
    }
    return try await execute(post(to: path, body: .stream(stream, length: .unknown)))
  }

  private func post(to path: String, body: HTTPClientRequest.Body) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.method = .POST
    request.headers.add(name: "Authorization", value: Self.basic("alice", "alice"))
    request.headers.add(name: "Content-Type", value: "application/json")
    request.body = body
    return request
  }

  /// Makes a request as it is.
  func execute(_ request: HTTPClientRequest) async throws -> Reply {
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
    let body = try await response.body.collect(upTo: 128 * 1024 * 1024)
    return Reply(status: Int(response.status.code), headers: response.headers, body: Array(body.readableBytesView))
  }

  /// The value of an `Authorization` field.
  static func basic(_ user: String, _ password: String) -> String {
    "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
  }
}

extension Harness {
  /// The devices that an audience's sends reach now, in the default hub.
  func reached(_ audience: Audience, hub: HubName = .default) async throws -> [RegistrationID] {
    try await registry.resolve([AudienceQuery(hub: hub, audience: audience, platforms: .all)])[0].map(\.registration)
  }

  /// The first step of registering by handle, as the apps do it: the id is what stands between the first and the last
  /// character.
  func issue(handle: String?, as user: String = "alice", root: String = "") async throws -> String {
    let reply = try await request(.post, root + "/api/register" + (handle.map { "?handle=\($0)" } ?? ""), as: user)
    guard reply.status == 200 else { throw UnexpectedReply(text: reply.text) }
    return String(reply.text.dropFirst().dropLast())
  }

  /// The second step.
  func complete(
    _ id: String, handle: String, platform: String = "apns", tags: [String] = [], as user: String = "alice",
    root: String = ""
  ) async throws -> Reply {
    let list = tags.map { #""\#($0)""# }.joined(separator: ",")
    return try await request(
      .put, root + "/api/register/\(id)", as: user,
      body: #"{"Platform":"\#(platform)","Handle":"\#(handle)","Tags":[\#(list)]}"#)
  }
}

/// What the test's next step cannot do without did not happen.
struct UnexpectedReply: Error {
  let text: String
}
