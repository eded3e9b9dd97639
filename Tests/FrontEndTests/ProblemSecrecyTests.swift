import FanfareCore
import RDKafka
import Support
import Testing

@testable import FrontEnd

/// Every kind of problem, brought about by requests with marked secrets in their credentials, paths and bodies.
@Suite(.timeLimit(.minutes(2))) struct ProblemSecrecyTests {
  private static let password = "PASSWORD-MARK-1"
  private static let user = "USER-MARK-4"
  private static let marks = [password, "MESSAGE-MARK-3", "HANDLE-MARK-2", "MARKHANDLE2", "TOKEN-MARK-5"]
  private static let message = "MESSAGE-MARK-3"
  private static let handle = "HANDLE-MARK-2"
  private static let authorization = ("Authorization", Harness.basic(user, password))

  private static func send(to recipient: String) -> String {
    #"{"to":{"user":"\#(recipient)"},"message":{"body":"\#(message)"}}"#
  }

  private static func report(_ state: SendReport.State, isBroadcast: Bool) -> SendReport {
    SendReport(
      id: .random(), hub: .default, state: state, sender: user, audience: isBroadcast ? "news" : "username:bob",
      isBroadcast: isBroadcast, acceptedAt: UnixTime(milliseconds: 0), settledAt: nil, counts: [:], devices: nil)
  }

  /// Accepts one password; throws for others as a test says.
  private struct Marked: Authenticator {
    struct Defect: Error {}

    let challenge = BasicCredentials.challenge

    func authenticate(
      _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
    ) async throws -> Principal? {
      guard case .basic(let basic) = credentials, basic.user == ProblemSecrecyTests.user else { return nil }
      switch basic.password {
      case ProblemSecrecyTests.password: return Principal(user: basic.user, scopes: Set(Scope.allCases))
      case ProblemSecrecyTests.password + "-limited": return Principal(user: basic.user, scopes: [])
      case ProblemSecrecyTests.password + "-unavailable": throw AuthenticationError.unavailable
      case ProblemSecrecyTests.password + "-defect": throw Defect()
      default: return nil
      }
    }
  }

  private struct Request {
    let code: ProblemCode
    let method: Harness.Method
    let path: String
    var body: String?
    var type = "application/json"
    var headers: [(String, String)] = []
    var passwordSuffix = ""

    init(
      _ code: ProblemCode, _ method: Harness.Method, _ path: String, _ body: String? = nil, type: String? = nil,
      headers: [(String, String)] = [], passwordSuffix: String = ""
    ) {
      (self.code, self.method, self.path, self.body, self.headers) = (code, method, path, body, headers)
      self.type = type ?? "application/json"
      self.passwordSuffix = passwordSuffix
    }
  }

  /// Requests that any front end answers so, besides those of `raw` and `troubles`.
  private static func requests(ended: SendID, single: SendID) -> [Request] {
    let native = #"{"to":{"device":{"platform":"apns","handle":"\#(handle)"}},"native":{"wns":"\#(message)"}}"#
    let key = [("Idempotency-Key", "key-1")]
    return [
      Request(.malformedBody, .post, "/api/sends", #"{"to":{"user":"\#(message)"#),
      Request(.invalidField, .post, "/api/sends", #"{"to":{"user":"bob"},"priority":"\#(message)"}"#),
      Request(.invalidParameter, .get, "/api/sends?limit=\(message)"),
      Request(.unauthenticated, .get, "/api/sends", passwordSuffix: "-wrong"),
      Request(.forbidden, .post, "/api/sends", send(to: "bob"), passwordSuffix: "-limited"),
      Request(.notFound, .get, "/api/sends/\(message)"),
      Request(.methodNotAllowed, .delete, "/api/sends?\(message)"),
      Request(.keyReused, .post, "/api/sends", send(to: "bob") + " ", headers: key),
      Request(.alreadyEnded, .post, "/api/sends/\(ended)/pause"),
      Request(.notSteerable, .post, "/api/sends/\(single)/pause"),
      Request(
        .conflict, .patch, "/api/installations/i",
        #"[{"op":"test","path":"/handle","value":"\#(handle)"}]"#, type: "application/json-patch+json"),
      Request(
        .gone, .put, "/api/register/00000000-0000-4000-8000-000000000000",
        #"{"Platform":"fcm","Handle":"\#(handle)"}"#),
      Request(.tooLarge, .post, "/api/sends", String(repeating: message, count: 6000)),
      Request(.unsupportedMediaType, .post, "/api/sends", send(to: "bob"), type: "text/\(message)"),
      Request(.impossible, .post, "/api/sends", native.replacing("HANDLE-MARK-2", with: "aa")),
      Request(.kafkaUnavailable, .post, "/api/sends", send(to: "carol")),
      Request(.outcomeUnknown, .post, "/api/sends", send(to: "dave")),
      Request(.authenticationUnavailable, .get, "/api/sends", passwordSuffix: "-unavailable"),
      Request(.internalError, .get, "/api/sends", passwordSuffix: "-defect"),
    ]
  }

  /// Requests that the client of the harness cannot make.
  private static let raw: [(code: ProblemCode, text: String)] = [
    (
      .headersTooLarge,
      "GET / HTTP/1.1\r\nHost: x\r\n\(authorization.0): \(authorization.1)\r\n"
        + "X-A: \(String(repeating: message, count: 1500))\r\n\r\n"
    ),
    (.malformedRequest, "GET /api/sends HTTP/1.1\r\n\(authorization.0): \(authorization.1)\r\nX-\(message)\r\n\r\n"),
    (
      .notImplemented,
      "BREW /\(message) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(authorization.0): \(authorization.1)\r\n\r\n"
    ),
    (
      .requestTimeout,
      "POST /api/sends HTTP/1.1\r\nHost: x\r\n\(authorization.0): \(authorization.1)\r\n"
        + "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n\"\(message)"
    ),
  ]

  /// Front ends in trouble, each with a request.
  private static let troubles: [(change: @Sendable (inout Harness.Setup) -> Void, request: Request, count: Int)] = [
    ({ $0.hasRoom = { false } }, Request(.overloaded, .post, "/api/sends", send(to: "bob")), 1),
    (
      { $0.registry = BrokenRegistry(error: RegistryError(.unavailable, "down")) },
      Request(.registryUnavailable, .post, "/api/register?handle=\(handle)"), 1
    ),
    (
      { $0.history = ScriptedHistory(isReadable: false) },
      Request(.historyUnavailable, .get, "/api/sends/\(SendID.random())"), 1
    ),
    (
      { setup in
        var limits = QuotaLimits.none
        (limits.sendsPerSecond, limits.sendBurst) = (1, 1)
        setup.hubs = [FrontEndHub(name: .default, authenticators: [Marked()], quotas: QuotaPolicy(everyone: limits))]
      }, Request(.overQuota, .post, "/api/sends", send(to: "bob")), 2
    ),
    (
      { $0.configuration.logins.perUser = 1 },
      Request(.tooManyFailures, .get, "/api/sends", passwordSuffix: "-wrong"), 2
    ),
  ]

  private func perform(_ request: Request, at app: Harness) async throws -> Reply {
    let field = Harness.basic(Self.user, Self.password + request.passwordSuffix)
    return try await app.request(
      request.method, request.path, as: nil, body: request.body, type: request.type,
      headers: [("Authorization", field)] + request.headers)
  }

  /// The settings of all front ends of this test.
  private func prepare(_ setup: inout Harness.Setup, _ log: LogRecorder) {
    setup.hubs = [FrontEndHub(name: .default, authenticators: [Marked()])]
    setup.sink = RecordingSink { record in
      switch String(decoding: record.key ?? [], as: UTF8.self) {
      case "username:carol": RDKafkaError(code: .fatal, message: Self.message)
      case "username:dave": RDKafkaError(code: .possiblyPersisted, message: Self.message)
      default: nil
      }
    }
    setup.logger = log.logger
    setup.configuration.bodyTimeout = .seconds(1)
  }

  private func expectNoMark(_ text: String, _ code: ProblemCode) {
    let encoded = String(Self.authorization.1.dropFirst(6))
    for mark in Self.marks + [encoded] { #expect(!text.contains(mark), "\(code)") }
  }

  @Test func noProblemContainsASecret() async throws {
    let log = LogRecorder()
    let (ended, single) = (Self.report(.settled, isBroadcast: true), Self.report(.accepted, isBroadcast: false))
    var met: Set<ProblemCode> = []
    func check(_ reply: Reply, _ request: Request) {
      #expect(reply.text.contains(#""code":"\#(request.code.rawValue)""#), "\(reply.status) \(reply.text)")
      expectNoMark("\(reply.headers)\n\(reply.text)", request.code)
      met.insert(request.code)
    }
    try await Harness.run({
      prepare(&$0, log)
      $0.history = ScriptedHistory(reports: [ended, single])
    }) { app in
      let body = #"{"platform":"fcm","handle":"other"}"#
      let installed = try await perform(Request(.conflict, .put, "/api/installations/i", body), at: app)
      #expect(installed.status < 300, "\(installed.text)")
      let key = [("Idempotency-Key", "key-1")]
      let first = try await perform(
        Request(.keyReused, .post, "/api/sends", Self.send(to: "erin"), headers: key), at: app)
      #expect(first.status == 202, "\(first.text)")
      for request in Self.requests(ended: ended.id, single: single.id) {
        check(try await perform(request, at: app), request)
      }
      for (code, text) in Self.raw {
        let answer = try await RawConnection.exchange(text, port: app.port)
        #expect(answer.contains(#""code":"\#(code.rawValue)""#), "\(code): \(answer)")
        expectNoMark(answer, code)
        met.insert(code)
      }
    }
    for trouble in Self.troubles {
      try await Harness.run({
        prepare(&$0, log)
        trouble.change(&$0)
      }) { app in
        for _ in 1..<trouble.count { _ = try await perform(trouble.request, at: app) }
        check(try await perform(trouble.request, at: app), trouble.request)
      }
    }
    #expect(met == Set(ProblemCode.allCases))
    for mark in Self.marks + [Self.user] { #expect(!log.text.contains(mark), "\(mark)") }
    #expect(log.text.contains("Request refused"))
  }
}
