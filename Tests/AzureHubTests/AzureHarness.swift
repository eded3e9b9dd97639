import AsyncHTTPClient
import AzureHub
import Crypto
import FanfareCore
import Foundation
import FrontEnd
import NIOCore
import NIOHTTP1
import Operations
import RDKafka
import Registry
import Support
import Synchronization

/// A front end on a free port that speaks Azure's protocol, over a real registry.
struct AzureHarness: Sendable {
  struct Setup {
    var configuration = AzureConfiguration()
    var history = AnsweringHistory()
    var sink = RecordingSink()
  }

  static let rules = """
    # The rules of the tests.
    Listen Listen listen-key-0123456789 listen-key-9876543210
    Send Send send-key-0123456789
    Full Listen,Send,Manage full-key-0123456789 full-key-9876543210
    """
  static let namespaceRules = "Root Listen,Send,Manage root-key-0123456789"

  let port: Int
  let registry: RegistryDatabase
  let sink: RecordingSink
  let clock: ManualClock
  /// The folder of the jobs' files.
  let jobs: String

  /// Runs a front end with the hubs `default` and `orders` until `body` returns.
  static func run(_ configure: (inout Setup) -> Void = { _ in }, _ body: (AzureHarness) async throws -> Void)
    async throws
  {
    var setup = Setup()
    configure(&setup)
    let temporary = try TemporaryRegistry()
    let (registry, clock) = (temporary.registry, ManualClock())
    let directory = FileManager.default.temporaryDirectory.appending(path: "azure-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    func file(_ name: String, _ text: String) throws -> SharedAccessFile {
      let path = directory.appending(path: name).path
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      return try SharedAccessFile(path: path, logger: TestKafka.quietLogger) { path throws(FrontEndError) in
        do { return try String(contentsOfFile: path, encoding: .utf8) } catch {
          throw FrontEndError(.configuration, "unreadable")
        }
      }
    }
    let (own, namespace) = (try file("own", rules), try file("namespace", namespaceRules))
    let hubs = [HubName.default, HubName("orders")].compactMap { $0 }.map { hub in
      FrontEndHub(
        name: hub,
        authenticators: [
          SharedAccessAuthenticator(
            hub: hub, own: hub == .default ? nil : own, namespace: namespace, hosts: setup.configuration.hosts,
            clock: clock)
        ])
    }
    var frontEnd = FrontEndConfiguration()
    frontEnd.port = 0
    var dependencies = FrontEnd.Dependencies(
      registry: registry, inquiry: registry, secureStore: registry, claims: registry, broadcasts: registry,
      schedule: registry, quotas: registry, history: setup.history, deadLetters: NoDeadLetters(), sink: setup.sink,
      security: SecurityLog(logger: TestKafka.quietLogger), clock: clock)
    dependencies.templates = registry
    let jobs = directory.appending(path: "jobs").path
    let runner = JobRunner(
      folder: jobs, hubs: hubs.map(\.name), registry: registry, clock: clock, logger: TestKafka.quietLogger)
    setup.configuration.jobs = runner
    let azure = setup.configuration
    dependencies.protocols = [{ AzureRoutes(azure, $0) }]
    let server = try FrontEnd(
      configuration: frontEnd, hubs: hubs, dependencies: dependencies, logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await server.run() }
      group.addTask { try await runner.run() }
      let harness = AzureHarness(
        port: try await server.boundPort(), registry: registry, sink: setup.sink, clock: clock, jobs: jobs)
      try await body(harness)
      group.cancelAll()
      while let result = await group.nextResult() {
        if case .failure(let error) = result, !(error is CancellationError) { throw error }
      }
    }
  }

  /// Sends a request with a token of the rule; nil: without one.
  func request(
    _ method: HTTPMethod, _ path: String, as rule: AzureToken? = .send, headers: [(String, String)] = [],
    body: String = ""
  ) async throws -> AzureReply {
    let url = "http://127.0.0.1:\(port)\(path)"
    var request = HTTPClientRequest(url: url)
    request.method = method
    if let rule { request.headers.add(name: "Authorization", value: rule.text(for: url, at: clock.now())) }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    if !body.isEmpty { request.body = .bytes(ByteBuffer(string: body)) }
    let response = try await HTTPClient.shared.execute(request, timeout: .minutes(1))
    let bytes = try await response.body.collect(upTo: 16 * 1024 * 1024)
    return AzureReply(
      status: Int(response.status.code), headers: response.headers, text: String(buffer: bytes))
  }
}

struct AzureReply: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let text: String

  subscript(_ name: String) -> String? { headers.first(name: name) }

  /// The send that `Location` names.
  var send: SendID? {
    self["Location"].flatMap { $0.split(separator: "?").first?.split(separator: "/").last }
      .flatMap { SendID(String($0)) }
  }
}

/// Makes tokens as clients do, with an HMAC of its own (RFC 2104).
struct AzureToken: Sendable {
  /// What a client signs.
  enum Resource: Sendable { case url, hub, host }

  static let listen = AzureToken(name: "Listen", key: "listen-key-0123456789")
  static let send = AzureToken(name: "Send", key: "send-key-0123456789")
  static let full = AzureToken(name: "Full", key: "full-key-0123456789")
  static let root = AzureToken(name: "Root", key: "root-key-0123456789")

  var name: String
  var key: String
  var resource = Resource.url
  /// Whether hexadecimal digits of percent escapes are upper-case.
  var isUpperCase = false
  /// The order of the members.
  var order = ["sr", "sig", "se", "skn"]
  var lifetime: Duration = .seconds(300)
  var scheme = "http"

  func with(_ change: (inout Self) -> Void) -> Self {
    var copy = self
    change(&copy)
    return copy
  }

  func text(for url: String, at now: UnixTime) -> String {
    let parts = url.split(separator: "/", maxSplits: 3).map(String.init)
    let path = parts.count > 2 ? parts[2] : ""
    let hub = path.prefix { $0 != "/" && $0 != "?" }
    let signed =
      switch resource {
      case .url: "\(scheme)://\(parts[1])/\(path)" + (parts.count > 3 ? "/\(parts[3])" : "")
      case .hub: "\(scheme)://\(parts[1])/\(hub)"
      case .host: "\(scheme)://\(parts[1])/"
      }
    let resource = Self.encoded(signed.lowercased(), upper: isUpperCase)
    let expiry = String((now + lifetime).seconds)
    let signature = Data(Self.authenticate("\(resource)\n\(expiry)", key: key)).base64EncodedString()
    let members = [
      "sr": resource, "sig": Self.encoded(signature, upper: true), "se": expiry, "skn": name,
    ]
    return "SharedAccessSignature " + order.map { "\($0)=\(members[$0] ?? "")" }.joined(separator: "&")
  }

  private static func encoded(_ text: String, upper: Bool) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        String(UnicodeScalar(byte))
      default: String(format: upper ? "%%%02X" : "%%%02x", Int(byte))
      }
    }.joined()
  }

  private static func authenticate(_ text: String, key: String) -> [UInt8] {
    var block = Array(key.utf8)
    block += [UInt8](repeating: 0, count: 64 - block.count)
    let inner = SHA256.hash(data: block.map { $0 ^ 0x36 } + Array(text.utf8))
    return Array(SHA256.hash(data: block.map { $0 ^ 0x5C } + Array(inner)))
  }
}

/// A sink that keeps records.
final class RecordingSink: SendSink {
  private let kept = Mutex<[ProducerRecord]>([])

  /// The sends of the records, in order.
  func sends() throws -> [SendRequest] {
    try kept.withLock { $0 }.map { try SendRequest.decode($0.value[...], recordTime: UnixTime(milliseconds: 0)) }
  }

  func send(_ records: [ProducerRecord]) async -> [Result<RecordPosition, RDKafkaError>] { records.map(keep) }

  func submit(_ record: ProducerRecord, completion: @escaping @Sendable (SendResult) -> Void) {
    completion(keep(record))
  }

  private func keep(_ record: ProducerRecord) -> Result<RecordPosition, RDKafkaError> {
    kept.withLock { kept in
      kept.append(record)
      return .success(RecordPosition(topic: record.topic, partition: 0, offset: Int64(kept.count)))
    }
  }
}

/// A history that a test answers for.
struct AnsweringHistory: SendHistory {
  var answer: @Sendable (SendID, HubName) -> SendReport? = { _, _ in nil }

  var isAway = false

  func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    if isAway { throw Refusal(.historyUnavailable, "the ledger is away") }
    return answer(send, hub)
  }
  func list(_ query: SendQuery) async throws -> SendPage { SendPage(sends: [], next: nil) }
  func check() async throws {}
}

private struct NoDeadLetters: DeadLetterStore {
  func list(_ query: DeadLetterQuery) async throws(DeadLetterError) -> DeadLetterPage {
    DeadLetterPage(letters: [], counts: [:], countsAll: true, next: nil)
  }
  func letter(at place: LogPlace) async throws(DeadLetterError) -> DeadLetter? { nil }
  func redrive(_ order: RedriveOrder) async throws(DeadLetterError) -> RedriveOutcome { RedriveOutcome() }
}
