import AsyncHTTPClient
import FanfareCore
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Operations
import RDKafka
import Registry
import Support

@testable import FrontEnd

/// A front end on a free port over a real registry, with a client.
struct Harness: Sendable {
  /// The settings that a test may change; the defaults are those of the demo.
  struct Setup: Sendable {
    var configuration = FrontEndConfiguration()
    var hubs: [FrontEndHub]?
    var sink: any SendSink = RecordingSink()
    var history: any SendHistory = ScriptedHistory()
    var deadLetters: any DeadLetterStore = ScriptedDeadLetters()
    /// All stores in one; in SQLite if a test sets none.
    var store: (any DeviceRegistryConformance.Store)?
    var registry: (any DeviceRegistry & RegistrationDirectory)?
    var secureStore: (any SecurePayloadStore)?
    var claims: (any SendClaimStore)?
    var quotas: (any CallerQuotaStore)?
    var hasRoom: @Sendable () -> Bool = { true }
    var limits = RegistrationLimits()
    var operations: OperationsRoutes?
    var pulse: (any PulseSource)?
    var protocols: [@Sendable (FrontEndOperations) -> any ProtocolRoutes] = []
    var tracing: Tracing?
    var logger = TestKafka.quietLogger
    var security = SecurityLog(logger: TestKafka.quietLogger)

    /// Makes the dependencies; the registry takes the place of those that the test does not set.
    func dependencies(
      over registry: any DeviceRegistryConformance.Store, clock: any WallClock = SystemWallClock()
    ) -> FrontEnd.Dependencies {
      var dependencies = FrontEnd.Dependencies(
        registry: self.registry ?? registry, inquiry: registry, secureStore: secureStore ?? registry,
        claims: claims ?? registry,
        broadcasts: registry, schedule: registry, quotas: quotas ?? registry, history: history,
        deadLetters: deadLetters, sink: sink, hasRoom: hasRoom, security: security, clock: clock, tracing: tracing)
      dependencies.templates = registry
      dependencies.pulse = pulse
      dependencies.protocols = protocols
      return dependencies
    }
  }

  enum Method: String {
    case get = "GET", head = "HEAD", post = "POST", put = "PUT", delete = "DELETE", patch = "PATCH", options = "OPTIONS"
  }

  let port: Int
  let frontEnd: FrontEnd
  let registry: any DeviceRegistry & SecurePayloadStore & BroadcastStore & ScheduledSendStore
  let clock: ManualClock

  /// Authenticates the users of `ScopedDemo.scopes`.
  static let authenticator = ScopedDemo()

  /// Runs a front end until `body` returns.
  static func run(_ configure: (inout Setup) throws -> Void = { _ in }, _ body: (Harness) async throws -> Void)
    async throws
  {
    var setup = Setup()
    setup.configuration.port = 0
    // Most tests are about other things than failures.
    setup.configuration.logins.perAddress = 1_000_000
    setup.configuration.logins.perUser = 1_000_000
    try configure(&setup)
    let temporary = try TemporaryRegistry { $0.limits = setup.limits }
    let store = setup.store ?? temporary.registry
    let clock = ManualClock()
    let frontEnd = try FrontEnd(
      configuration: setup.configuration,
      hubs: setup.hubs ?? [FrontEndHub(name: .default, authenticators: [authenticator])],
      dependencies: setup.dependencies(over: store, clock: clock), operations: setup.operations,
      logger: setup.logger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await frontEnd.run() }
      let harness = Harness(
        port: try await frontEnd.boundPort(), frontEnd: frontEnd, registry: store, clock: clock)
      try await body(harness)
      group.cancelAll()
      while let result = await group.nextResult() {
        if case .failure(let error) = result, !(error is CancellationError) { throw error }
      }
    }
  }

  /// Runs a front end whose stores are in PostgreSQL.
  static func runOverPostgreSQL(_ body: (Harness) async throws -> Void) async throws {
    try await TestPostgreSQL.withSchema { configuration in
      let store = try await RegistryDatabase(configuration, logger: TestPostgreSQL.quietLogger)
      defer { store.close() }
      try await run({ $0.store = store }, body)
    }
  }

  /// Runs a front end that produces to topics of its own in the test's Kafka.
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

  /// Sends a request as a user whose password equals the name; nil: without credentials.
  func request(
    _ method: Method, _ path: String, as user: String? = "alice", body: String? = nil,
    type: String? = "application/json;charset=utf-8", headers: [(String, String)] = []
  ) async throws -> Reply {
    try await request(
      method, path, as: user, body: body.map { .bytes(ByteBuffer(string: $0)) }, type: body == nil ? nil : type,
      headers: headers)
  }

  /// Sends a request with any bytes as its body, as alice.
  func request(_ method: Method, _ path: String, bytes: [UInt8], type: String) async throws -> Reply {
    try await request(method, path, as: "alice", body: .bytes(ByteBuffer(bytes: bytes)), type: type)
  }

  /// Posts bytes as JSON in chunks, without a Content-Length.
  func postInChunks(_ bytes: [UInt8], to path: String) async throws -> Reply {
    let stream = AsyncStream { continuation in
      for start in stride(from: 0, to: bytes.count, by: 10_000) {
        continuation.yield(ByteBuffer(bytes: bytes[start..<min(start + 10_000, bytes.count)]))
      }
      continuation.finish()
    }
    return try await request(
      .post, path, as: "alice", body: .stream(stream, length: .unknown), type: "application/json")
  }

  private func request(
    _ method: Method, _ path: String, as user: String?, body: HTTPClientRequest.Body?, type: String?,
    headers: [(String, String)] = []
  ) async throws -> Reply {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.method = HTTPMethod(rawValue: method.rawValue)
    if let user { request.headers.add(name: "Authorization", value: Self.basic(user, user)) }
    if let type { request.headers.add(name: "Content-Type", value: type) }
    request.body = body
    for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
    return try await execute(request)
  }

  func execute(_ request: HTTPClientRequest) async throws -> Reply {
    let response = try await HTTPClient.shared.execute(request, timeout: .minutes(2))
    let body = try await response.body.collect(upTo: 128 * 1024 * 1024)
    return Reply(status: Int(response.status.code), headers: response.headers, body: Array(body.readableBytesView))
  }

  /// The value of an `Authorization` field.
  static func basic(_ user: String, _ password: String) -> String {
    "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
  }
}

extension Harness {
  /// Returns the devices that an audience resolves to.
  func reached(_ audience: Audience, hub: HubName = .default) async throws -> [RegistrationID] {
    try await registry.resolve([AudienceQuery(hub: hub, audience: audience, platforms: .all)])[0].map(\.registration)
  }

  /// Issues an id for a handle. Like the apps, strips the first and the last character of the answer.
  func issue(handle: String?, as user: String = "alice", root: String = "") async throws -> String {
    let reply = try await request(.post, root + "/api/register" + (handle.map { "?handle=\($0)" } ?? ""), as: user)
    guard reply.status == 200 else { throw UnexpectedReply(text: reply.text) }
    return String(reply.text.dropFirst().dropLast())
  }

  /// Completes the registration of an issued id.
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

/// Accepts every user whose password is the name; the name also decides the scopes.
struct ScopedDemo: Authenticator {
  let challenge = BasicCredentials.challenge

  func authenticate(_ credentials: Credentials, hub: HubName, from origin: LoginOrigin) async throws -> Principal? {
    guard case .basic(let basic) = credentials, basic.user == basic.password else { return nil }
    return Principal(user: basic.user, scopes: Self.scopes(of: basic.user), validity: Validity { true })
  }

  /// The name of a user who has just these scopes.
  static func user(_ scopes: some Sequence<Scope>) -> String {
    "only " + scopes.map { $0.rawValue.replacing(":", with: ".") }.joined(separator: " ")
  }

  /// Opal has all scopes; devon may only register devices; sandy may only send; users named "only …" have just those
  /// scopes; all others may do everything with their own devices and sends.
  private static func scopes(of user: String) -> Set<Scope> {
    let sending = Set(Scope.sending + [.sendNative])
    if user.hasPrefix("only ") {
      return Set(user.split(separator: " ").compactMap { Scope(rawValue: String($0).replacing(".", with: ":")) })
    }
    return switch user {
    case "opal": Set(Scope.allCases)
    case "devon": [.device]
    case "sandy": sending
    default: sending.union([.device])
    }
  }
}

/// An answer that a helper cannot use.
struct UnexpectedReply: Error {
  let text: String
}
